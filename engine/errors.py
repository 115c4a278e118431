"""Errors of a build that cannot go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ModelError(RuntimeError):
    """A model or a data test failed; the message names the first and says what it found."""


class FailedModel(ModelError):
    """A model's statement failed, its contract is broken, or a data test found a row: then `row` is one that breaks it."""

    def __init__(self, message: str, row: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.row = row or {}


class RetryableError(ModelError):
    """Room or memory is short, or somebody has the build database open: once that is over, the same work goes through."""
