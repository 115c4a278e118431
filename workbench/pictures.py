"""`make pictures`: the pictures of README.md and docs/, taken of a demo whose data end yesterday."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from workbench.commit import ROOT
from workbench.measure import DRIVETAIL

REPORT = "report"
PICTURES = {
    "docs/weekly-report.png": (REPORT, 900),
    "docs/console-fleet.png": ("/", 900),
    "docs/console-drive.png": ("/drive?id=D00000002A", 1140),
    "docs/console-candidates.png": ("/candidates", 900),
}
"""File -> the page of the console, or the weekly report, and its height in pixels. All are 1,440 wide."""


def main() -> None:
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit("Chromium is not installed: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    out = ROOT / "target" / "pictures"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([DRIVETAIL, "demo", "--out", out], check=True)
    report = next((out / "warehouse" / "reports").glob("*.html"))
    serve = [str(DRIVETAIL), "serve", "--warehouse", str(out / "warehouse"), "--port", "8099"]
    ada = {**os.environ, "LOGNAME": "ada"}  # who decides
    with subprocess.Popen(serve, env=ada, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stdout
        first = server.stdout.readline().strip()
        address = first.partition("/?")[0]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(color_scheme="light").new_page()
        page.goto(first)
        for name, (path, height) in PICTURES.items():
            page.set_viewport_size({"width": 1440, "height": height})
            page.goto(report.as_uri() if path == REPORT else address + path)
            page.wait_for_timeout(1500)  # figures are drawn when the browser has time
            page.screenshot(path=ROOT / name)
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
