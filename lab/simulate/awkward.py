"""Scenario `awkward`: bundles of all that goes wrong. Other scenarios at their worst, and a bundle whose files are mostly refused."""

from __future__ import annotations

import importlib
import json
from typing import Any

from lab.contract import (
    BAD_ROW,
    MISSING_FILE,
    NO_CLOCK,
    NO_RESULT,
    OUTSIDE_BUNDLE,
    UNKNOWN_CONFIG,
    UNKNOWN_TOOL,
    UNREADABLE,
)
from lab.simulate.draft import Draft, manifest

DEFAULTS: dict[str, Any] = {"experiment_id": "awkward"}
"""`experiment_id`: what the names of its experiments begin with."""
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "reads": ("reads_intrinsic", {"is_awkward": True, "runs": 4}),
    "writers": ("writers", {"is_awkward": True}),
    "sync-writes": ("sync_writes", {"is_awkward": True, "runs": 4}),
    "before-after": ("before_after", {"is_awkward": True, "runs": 4, "stress_runs": 2}),
}
"""Experiment -> module of this folder, and its parameters."""
BENCH = "benchmark,test,parameter,value,unit\nb,write,1,2,us\n"
CREATED = "rates at which files can be created and closed with 4 pes:\n... total rate = {:.1f} creates per second\n"
WRITTEN = {
    "fio version": "fio-3.33",
    "jobs": [{"jobname": "log", "write": {"total_ios": 2, "bw_bytes": 4096, "iops": 2.0, "clat_ns": {"mean": 500.0}}}],
}
REFUSED = {
    MISSING_FILE: ("gone.csv", "bench", "c"), OUTSIDE_BUNDLE: ("../outside.csv", "bench", "c"), UNKNOWN_TOOL: ("a.txt", "wc", "c"),
    UNKNOWN_CONFIG: ("b.txt", "bench", "nobody"), BAD_ROW: ("c.txt", "bench", "c"), UNREADABLE: ("d.txt", "iozone", "c"),
    NO_RESULT: ("e.txt", "fio", "c"), NO_CLOCK: ("f.txt", "tracefs", "c"),
}  # fmt: skip
"""Reason -> file, tool and configuration of its row of runs.csv."""
TEXTS = {
    UNREADABLE: "no such file or directory\n", NO_RESULT: '{"fio version": "fio-3.33", "jobs": []}\n',
    NO_CLOCK: "block_rq_issue: 7,0 R 4096 () 8 + 8 be,0,6 [dd]\n",
}  # fmt: skip


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundles. Truth: that of each scenario, and each file of the last bundle with what becomes of it."""
    for name, (scenario, given) in PARTS.items():
        module = importlib.import_module(f"lab.simulate.{scenario}")
        experiment_id = f"{parameters['experiment_id']}-{name}"
        module.write(draft.parts.setdefault(experiment_id, Draft()), {**module.DEFAULTS, **given, "experiment_id": experiment_id}, seed)
    experiment_id = f"{parameters['experiment_id']}-refused"
    draft.parts[experiment_id] = _refused(experiment_id)


def _refused(experiment_id: str) -> Draft:
    title = "Files that are refused, and two that only look so"
    block = {"config_id": "c", "device_id": "d"}
    part = Draft(manifest({"experiment_id": experiment_id}, "other", title, {}, configs=[block]))
    for reason, (file, tool, config) in REFUSED.items():
        part.add(file, TEXTS.get(reason, BENCH), tool, config, 0 if reason == BAD_ROW else 1)
        if reason in (MISSING_FILE, OUTSIDE_BUNDLE):
            del part.files[file]
    part.add("metarates.txt", "".join(CREATED.format(rate) for rate in (97.0, 100.0, 103.0)), "metarates", "c", 1)
    part.add("fio.json", f"fio: this text comes first\n{json.dumps(WRITTEN)}\n", "fio", "c", 1)
    part.truth["ingested_files"] = [
        *({"file": file, "status": "rejected", "reason": reason, "rows_parsed": 0} for reason, (file, _, _) in REFUSED.items()),
        {"file": "metarates.txt", "status": "accepted", "reason": None, "rows_parsed": 3},
        {"file": "fio.json", "status": "accepted", "reason": None, "rows_parsed": 4},
    ]
    return part
