"""The commit that a result was measured on."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def current_commit() -> str:
    """The commit that is run, and whether files differ from it; results, which one part writes before the next is run, are none."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        " with local changes" if git("status", "--porcelain", "--", ".", ":!docs/results") else ""
    )
