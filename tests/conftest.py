"""What tests of several folders start from."""

from __future__ import annotations

import pytest

LONGEST = ("spark", "lab", "proof", "report", "models", "safety", "drivetail")
"""Folders whose tests take minutes, the longest first: the processes of a run then end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, all else as it was collected."""
    items.sort(key=lambda item: next((place for place, folder in enumerate(LONGEST) if folder in item.path.parts), len(LONGEST)))
