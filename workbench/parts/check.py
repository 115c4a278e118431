"""A checkout: `make demo` in a fresh one, then `make check` after an edit of one model, and of everything."""

from __future__ import annotations

import shutil
import sys

from engine.compiled import models_of
from workbench.commit import ROOT
from workbench.measure import measure
from workbench.parts import Bound, Section, Setting, middle

EDITED = ("fct_weekly_tails", "int_raid_hours__medians")
"""A mart that few read, and a model that most are made of."""


def bench_check(setting: Setting) -> list[Section]:
    """The demo where nothing is compiled yet; then a checkout in which everything has passed once, and what each command costs."""
    checkout = setting.work / "checkout"
    shutil.rmtree(checkout, ignore_errors=True)
    measure("git", "clone", "--quiet", "--shared", ROOT, checkout)
    run = (sys.executable, "-m")  # what make runs, of this checkout's own code
    demo = measure(*run, "drivetail", "demo", "--out", "demo", cwd=checkout)
    demo += measure(*run, "workbench.dbt_database", "demo/warehouse", "target/dbt.duckdb", cwd=checkout)
    command = (*run, "workbench.check")
    costs = {"`make demo`, the first time": [demo], "everything, the first time after it": [measure(*command, "--all", cwd=checkout)]}
    for name in EDITED:
        (path,) = (checkout / node.path for node in models_of() if node.name == name)
        runs = []
        for repetition in range(setting.repetitions):
            # other SQL, of the same meaning
            path.write_text(f"{path.read_text(encoding='utf-8').rstrip()}\n-- {repetition}\n", encoding="utf-8")
            runs.append(measure(*command, cwd=checkout))
        costs[f"after an edit of `{path.stem}`"] = runs
    costs["everything again"] = [measure(*command, "--all", cwd=checkout) for _ in range(setting.repetitions)]
    shutil.rmtree(checkout)
    rows = {what: middle(runs) for what, runs in costs.items()}
    lines = [
        f"A clone of the checkout, the environment there. Medians of {setting.repetitions}.",
        "",
        "| `make check`, but for the first row | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|",
        *(f"| {what} | {cost.cells} |" for what, cost in rows.items()),
    ]
    edits = [cost.seconds for what, cost in rows.items() if what.startswith("after")]
    return [
        Section(
            "The inner loop",
            lines,
            [
                Bound("`make demo` in a fresh clone", demo.seconds, 35, aim=20),
                Bound("`make check` after an edit of one model", max(edits), 10, aim=3),
                Bound("`make check ALL=1`", rows["everything again"].seconds, 40, aim=20),
            ],
        )
    ]
