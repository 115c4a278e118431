"""How a wheel is made of a checkout (PEP 517): hatchling makes it, after what is no file of the checkout has been made for it.

That is the compiled models and the man page. pyproject.toml cannot name them: an editable installation, as `uv sync` makes it, would need
them before there is anything that makes them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hatchling.build
from hatchling.build import *  # noqa: F403  the other hooks of PEP 517
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MADE = {
    **{f"target/compiled/{name}duckdb.json": f"drivetail/_project/target/compiled/{name}duckdb.json" for name in ("", "lab/", "study/")},
    "target/drivetail.1": "share/man/man1/drivetail.1",
}
"""Files that a wheel holds beside those of the checkout, and where: the last is data."""


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put them into a wheel that is to be installed elsewhere."""
        if version != "editable":
            for name, place in MADE.items():
                kind = "force_include" if place.startswith("drivetail/") else "shared_data"
                build_data[kind][str(Path(self.root) / name)] = place


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Packages that a build in an environment of its own needs: those that compile models and run them."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *hatchling.build.get_requires_for_build_wheel(config_settings),
        *project["dependencies"],
        *project["optional-dependencies"]["models"],
    ]


def build_wheel(wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None) -> str:
    """Make what is missing or has changed, then the wheel. Called by pip and uv, in the root of the checkout."""
    with TemporaryDirectory() as folder:
        # the name, version and entry points of what is not installed yet
        metadata = Path(folder) / hatchling.build.build_editable(folder)
        path = os.pathsep.join(filter(None, [str(metadata), os.environ.get("PYTHONPATH")]))  # pip has the environment of the build there
        environment = {**os.environ, "PYTHONPATH": path, "DO_NOT_TRACK": "1"}
        for module, *arguments in (("engine.compiled", ".", "lab", "study"), ("workbench.man",)):
            subprocess.run([sys.executable, "-m", module, *arguments], check=True, env=environment)
    name: str = hatchling.build.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name
