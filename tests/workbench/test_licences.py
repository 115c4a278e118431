"""workbench/licences.py: what a bill of materials declares becomes a table, and an unknown licence is named."""

from __future__ import annotations

from workbench.licences import table


def test_licences_of_metadata_without_a_permissive_licence_are_named() -> None:
    components = [
        {"name": "ours", "version": "2", "licenses": [{"license": {"id": "MIT"}}]},
        {"name": "copyleft", "version": "1", "licenses": [{"expression": "GPL-3.0-only OR MIT"}]},
        {"name": "silent", "version": "3"},
        {"name": "protobuf", "version": "4"},
    ]
    text, unknown = table(components)
    assert unknown == ["copyleft (GPL-3.0-only OR MIT)", "silent (no licence)"]
    assert [line.split(" | ")[0] for line in text.splitlines()[2:]] == ["| copyleft", "| ours", "| protobuf", "| silent"]
    assert "BSD-3-Clause" in text
