"""A command that lacks a library names the command that adds it to this very installation."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest.contract import extras
from ingest.contract.extras import how_to_install

WHEEL = {"url": "file:///srv/drivetail-0.1.0-py3-none-any.whl", "archive_info": {}}
GIT = {"url": "https://example.org/drivetail.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}


class Installation:
    """The files that an installer writes beside a package."""

    def __init__(self, installer: str, came: dict[str, Any] | None) -> None:
        self.files = {"INSTALLER": f"{installer}\n", "direct_url.json": came and json.dumps(came)}

    def read_text(self, name: str) -> str | None:
        return self.files[name]


@pytest.mark.parametrize(
    ("installer", "came", "said"),
    [
        ("pip", WHEEL, "`'/opt/my env/bin/python' -m pip install 'drivetail[gate] @ file:///srv/drivetail-0.1.0-py3-none-any.whl'`"),
        (
            "uv",
            WHEEL,
            "`uv pip install --python '/opt/my env/bin/python' 'drivetail[gate] @ file:///srv/drivetail-0.1.0-py3-none-any.whl'`",
        ),
        ("uv", {"url": "file:///src/drivetail", "dir_info": {"editable": True}}, "--editable '/src/drivetail[gate]'`"),
        ("pip", {"url": "file:///src/drivetail", "dir_info": {}}, "'drivetail[gate] @ file:///src/drivetail'`"),
        ("pip", GIT, "'drivetail[gate] @ git+https://example.org/drivetail.git@abc'`"),
        ("pip", None, "install 'drivetail[gate]'`"),
    ],
)
def test_the_hint_names_where_it_came_from(
    installer: str, came: dict[str, Any] | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "distribution", lambda name: Installation(installer, came))
    monkeypatch.setattr(sys, "executable", "/opt/my env/bin/python")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert how_to_install("gate").startswith("install drivetail[gate]: `")
    assert how_to_install("gate").endswith(said)


def test_a_tool_keeps_the_extras_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text('[tool]\nrequirements = [{ name = "drivetail", extras = ["notify"], path = "/srv/d.whl" }]\n')
    monkeypatch.setattr(extras, "distribution", lambda name: Installation("uv", WHEEL))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    expected = "`uv tool install 'drivetail[console,notify] @ file:///srv/drivetail-0.1.0-py3-none-any.whl'`"
    assert how_to_install("console").endswith(expected)
