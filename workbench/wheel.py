"""Put the compiled models and the man page into the wheel: hatchling calls this when it builds one.

They are no file of the checkout, so pyproject.toml cannot name them: `uv sync` takes what it names into the environment of the checkout,
which is there before they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MAN = "target/drivetail.1"
COMPILED = ("target/compiled/duckdb.json", "target/compiled/lab/duckdb.json")


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only while a wheel is built
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to a wheel that is to be installed elsewhere. Raises: FileNotFoundError where they are not compiled."""
        if version != "editable":
            for name in (*COMPILED, MAN):
                file = Path(self.root) / name
                if not file.exists():
                    raise FileNotFoundError(
                        f"{file}: not made yet; `make wheel` makes it, or `python -m engine.compiled . lab` and `python -m workbench.man`"
                    )
                if name == MAN:
                    build_data["shared_data"][str(file)] = "share/man/man1/drivetail.1"
                else:
                    build_data["force_include"][str(file)] = f"drivetail/_project/{name}"
