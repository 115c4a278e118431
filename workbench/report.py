"""How large the weekly report of 2,000 RAID groups is, how long it takes to write, and how long to open beside a blank Plotly page.

    python -m workbench.report           (some ten minutes on 2 cores; needs Chromium; writes docs/results/report.md)

A page is opened when it has loaded and two frames are drawn. Both pages are opened in turns, each in a new context: the machine is shared, so what
counts is the ratio within one run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

from workbench.commit import ROOT, current_commit
from workbench.measure import DRIVETAIL, measure

RESULTS = ROOT / "docs" / "results" / "report.md"
REPETITIONS = 15
OPENED = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
    done(Math.max(performance.now(), performance.getEntriesByType('navigation')[0].loadEventEnd)))))"""


def opening_ms(browser: Any, page: Path) -> float:
    """Milliseconds from the beginning of the navigation until it is loaded and drawn."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.goto(page.as_uri(), wait_until="load")
    spent = float(tab.evaluate(OPENED))
    context.close()
    return spent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--groups", type=int, default=2000)
    arguments.add_argument("--days", type=int, default=14)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="drivetail-report-") as folder:
        root = Path(folder)
        disks = asked.groups * 2 // 3
        numbers = ["--disk-groups", str(disks), "--ssd-groups", str(asked.groups - disks), "--days", str(asked.days)]
        measure(DRIVETAIL, "simulate", "--out", root / "fleet", *numbers)
        measure(DRIVETAIL, "ingest", "bundle", root / "fleet", "--warehouse", root / "warehouse")
        measure(DRIVETAIL, "build", "--warehouse", root / "warehouse")
        written = measure(DRIVETAIL, "report", "--warehouse", root / "warehouse", "--out", root / "report.html")
        blank = root / "blank.html"
        go.Figure().write_html(blank, include_plotlyjs=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox"])
            times = [(opening_ms(browser, blank), opening_ms(browser, root / "report.html")) for _ in range(REPETITIONS + 1)][1:]
            browser.close()
        page, ratio = (root / "report.html").stat().st_size, statistics.median(mine / its for its, mine in times)
        shown = f"""# Weekly report

`python -m {__spec__.name} --groups {asked.groups} --days {asked.days}`; 2 shared cores. Commit {current_commit()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.
{asked.groups:,} simulated RAID groups, medians of {REPETITIONS} openings in turns with a blank Plotly page.

| | |
|---|--:|
| page (MB; at most 6) | {page / 1e6:.2f} |
| JSON beside it (MB) | {(root / "report.json").stat().st_size / 1e6:.2f} |
| written in (s) | {written.seconds:.1f} |
| peak memory (MiB) | {written.peak_mib:,.0f} |
| opened in (ms) | {statistics.median(mine for _, mine in times):,.0f} |
| blank Plotly page (ms) | {statistics.median(its for its, _ in times):,.0f} |
| **over the blank page (at most 1.5x)** | **{ratio:.2f}x** |
"""
    RESULTS.write_text(shown, encoding="utf-8")
    print(shown)
    if page >= 6e6 or ratio > 1.5:
        sys.exit("the report is too large or opens too slowly")


if __name__ == "__main__":
    main()
