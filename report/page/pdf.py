"""The report as PDF: Chromium prints the page, as a reader's browser would."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from engine.read import QueryError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PRINT_SECONDS = 180


def print_page(page: str) -> bytes:
    """A page of drivetail as PDF. Raises: QueryError where there is no Chromium, or it cannot print."""
    browser = next((path for name in BROWSERS if (path := which(name))), None)
    if browser is None:
        raise QueryError(
            f"a PDF needs Chromium, but none of {', '.join(BROWSERS)} is on the PATH: install it (Debian: apt-get install chromium), "
            "or print the HTML report from any browser"
        )
    with TemporaryDirectory(prefix="drivetail-pdf-") as folder:
        source, target = Path(folder) / "report.html", Path(folder) / "report.page.pdf"
        source.write_text(page, encoding="utf-8")
        command = [
            browser, "--headless", "--disable-gpu", "--no-pdf-header-footer", f"--user-data-dir={folder}/profile",
            # its sandbox does not work for root, as in containers; the page asks nothing of the world
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
            "--virtual-time-budget=60000", f"--print-to-pdf={target}", f"{source.as_uri()}#print",
        ]  # fmt: skip
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=PRINT_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise QueryError(
                f"{browser} has not printed the report within {PRINT_SECONDS} s; print the HTML report from a browser"
            ) from error
        if not target.exists():
            last = (result.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise QueryError(f"{browser} could not print the report ({last}); print the HTML report from a browser")
        return target.read_bytes()
