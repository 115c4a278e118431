"""How to add what this installation lacks: drivetail is on no index, so a command names the file or folder that it came from."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path


def how_to_install(extra: str) -> str:
    """The command that adds an extra to this installation, as a sentence's end: `install it with ...`."""
    ours = distribution("drivetail")
    came = json.loads(ours.read_text("direct_url.json") or "{}")
    python, extras = Path(sys.executable), {extra}
    receipt = Path(sys.prefix) / "uv-receipt.toml"
    if receipt.exists():  # `uv tool install` replaces the tool, with the extras that are named
        asked = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        extras |= {name for one in asked if one["name"] == "drivetail" for name in one.get("extras", ())}
        command = "uv tool install"
    elif (ours.read_text("INSTALLER") or "").strip() == "uv":
        command = f"uv pip install --python {shlex.quote(str(python))}"
    else:
        command = f"{shlex.quote(str(python))} -m pip install"
    name = f"drivetail[{','.join(sorted(extras))}]"
    url = came.get("url", "")
    if came.get("dir_info", {}).get("editable"):
        what = f"--editable {shlex.quote(url.removeprefix('file://') + name.removeprefix('drivetail'))}"
    elif "vcs_info" in came:
        what = shlex.quote(f"{name} @ {came['vcs_info']['vcs']}+{url}@{came['vcs_info']['commit_id']}")
    else:
        what = shlex.quote(f"{name} @ {url}" if url else name)
    return f"install drivetail[{extra}]: `{command} {what}`"
