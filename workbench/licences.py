"""`make sbom`: the licences in a CycloneDX file as a table, and an error for a component whose licence nobody has looked at."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

PERMISSIVE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python|Zlib|Unlicense|CC0|MPL|Mozilla", re.IGNORECASE)
"""Licences that a wheel of Apache-2.0 may depend on. The MPL asks for the source of changed files, and no file is changed."""
LOOKED_AT = {
    "protobuf": "BSD-3-Clause: its metadata name no licence, its file LICENSE does",
    "text-unidecode": "Artistic-1.0 or GPL-2.0-or-later, as the user chooses: Artistic-1.0 here",
}
"""Components whose metadata do not decide -> the licence that holds."""


def licence_of(component: dict[str, Any]) -> str:
    """The licences that a component declares, joined; empty without any."""
    entries = (entry.get("expression") or entry["license"].get("id") or entry["license"]["name"] for entry in component.get("licenses", ()))
    return "; ".join(str(entry).removeprefix("License :: OSI Approved :: ") for entry in entries)


def table(components: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """The licences as a Markdown table by name, and the names of components that neither list has."""
    lines, unknown = ["| component | version | licence |", "|---|---|---|"], []
    for component in sorted(components, key=lambda component: str(component["name"])):
        name, licence = component["name"], licence_of(component)
        if name not in LOOKED_AT and not (PERMISSIVE.search(licence) and "GPL" not in licence):
            unknown.append(f"{name} ({licence or 'no licence'})")
        lines.append(f"| {name} | {component['version']} | {LOOKED_AT.get(name, licence)} |")
    return "\n".join(lines) + "\n", unknown


def main() -> None:
    bill, page = map(Path, sys.argv[1:])
    text, unknown = table(json.loads(bill.read_text(encoding="utf-8"))["components"])
    page.write_text(text, encoding="utf-8")
    if unknown:
        sys.exit(
            f"{bill}: read the licence of {', '.join(unknown)}, and add it to LOOKED_AT in workbench/licences.py or drop the dependency"
        )


if __name__ == "__main__":
    main()
