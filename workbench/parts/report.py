"""The weekly report of 2,000 RAID groups: how large it is, and how long it takes to open beside a blank Plotly page.

A page is opened when it has loaded and two frames are drawn. Both pages are opened in turns, each in a new context.
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path
from typing import Any

from workbench.measure import DRIVETAIL, measure, simulate
from workbench.parts import Bound, Section, Setting

REPETITIONS = 15
DAYS = 14
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


def bench_report(setting: Setting) -> list[Section]:
    """Some ten minutes; needs Chromium."""
    if not (chromium := shutil.which("chromium")):
        print("The weekly report: skipped, Chromium is not installed", flush=True)
        return []
    import plotly.graph_objects as go
    from playwright.sync_api import sync_playwright

    groups = 30 if setting.small else 2000
    root = setting.work / "report"
    shutil.rmtree(root, ignore_errors=True)
    simulate(root / "fleet", groups * 2 // 3, groups - groups * 2 // 3, DAYS)
    measure(DRIVETAIL, "ingest", "bundle", root / "fleet", "--warehouse", root / "warehouse")
    measure(DRIVETAIL, "build", "--warehouse", root / "warehouse")
    page, blank = root / "report.html", root / "blank.html"
    cost = measure(DRIVETAIL, "report", "--warehouse", root / "warehouse", "--out", page)
    go.Figure().write_html(blank, include_plotlyjs=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        times = [(opening_ms(browser, blank), opening_ms(browser, page)) for _ in range(REPETITIONS + 1)][1:]
        browser.close()
    its, mine = (statistics.median(each) for each in zip(*times, strict=True))
    lines = [
        f"{groups:,} simulated RAID groups, {DAYS} days; medians of {REPETITIONS} openings in turns with a blank Plotly page.",
        "",
        "| | |",
        "|---|--:|",
        f"| JSON beside it (MB) | {page.with_suffix('.json').stat().st_size / 1e6:.2f} |",
        f"| written in (s) | {cost.seconds:.1f} |",
        f"| peak memory (MiB) | {cost.peak_mib:,.0f} |",
        f"| opened in (ms) | {mine:,.0f} |",
        f"| blank Plotly page (ms) | {its:,.0f} |",
    ]
    ratio = statistics.median(mine / its for its, mine in times)
    bounds = [Bound("page", page.stat().st_size / 1e6, 6, "MB"), Bound("opening over the blank page", ratio, 1.5, "x")]
    shutil.rmtree(root)
    return [Section("The weekly report", lines, bounds)]
