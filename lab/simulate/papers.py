"""Scenario `papers`: a bundle for each experiment of the papers, made by the other scenarios, in which the numbers that they printed hold.

How busy processors are is not among them.
"""

from __future__ import annotations

import importlib
from typing import Any

from lab.simulate import sync_writes
from lab.simulate.draft import Draft

DEFAULTS: dict[str, Any] = {}

WHOLE, FRAGMENTED = [1] * 8, [1, 1, 29, 1, 1, 1, 29, 1]
NEVER_S = 1e12
STEADY = {"noise": 0.005, "extents": WHOLE, "period_s": NEVER_S, "onset_file": []}
READS: dict[str, tuple[dict[str, Any], str]] = {
    "reads-a": (
        {
            **STEADY, "hours": 8, "pace_s": 10.0, "period_s": 7800.0, "duration_s": 300.0, "temporal_drop_ratio": 60 / 430,
            "temporal_drop_spread": 0.008,
        },
        "TMP-01 TMP-02 TMP-03 TMP-04 TMP-05 TMP-06 TMP-17 TMP-18",
    ),
    "reads-b": (
        {
            **STEADY, "hours": 2.5, "pace_s": 2.0, "throughput_bytes_per_s": 455e6, "period_s": 1080.0, "duration_s": 90.0,
            "temporal_drop_ratio": 65 / 455, "temporal_drop_spread": 0.008,
        },
        "TMP-09 TMP-10 TMP-11 TMP-12 TMP-13",
    ),
    "reads-fragmented": ({**STEADY, "hours": 4, "extents": FRAGMENTED, "intrinsic_drop_ratio": 0.13}, "INT-01 INT-02 INT-03"),
    "reads-fragmented-c": ({**STEADY, "hours": 4, "extents": FRAGMENTED, "intrinsic_drop_ratio": 0.04}, "INT-04"),
    "reads-permanent": (
        {
            **STEADY, "hours": 12, "throughput_bytes_per_s": 418e6, "onset_hour": 6, "onset_file": [1, 5],
            "permanent_drop_ratio": 53 / 418,
        },
        "PRM-01 PRM-06 PRM-09 PRM-10",
    ),
    "reads-all": (
        {
            "noise": 0.005, "onset_hour": 24, "intrinsic_drop_ratio": 0.105, "temporal_drop_ratio": 0.105, "permanent_drop_ratio": 0.105,
        },
        "ALL-01 ALL-02 ALL-03",
    ),
}  # fmt: skip
"""Experiment -> parameters of reads-modes, and the numbers of Borge et al. that it gives."""
TRACES = {"noise": 0.005, "latency_us": 500.0, "is_awkward": False, "phases": {"before": 1.0, "after": 1.25}}
OF_TRACES = "INT-11 INT-12 PRM-12"
OF_WRITES = {
    "writes-disk": "HDD-02 HDD-03 HDD-04 BAL-01 BAL-02 BAL-03 BAL-04 BAL-08",
    "writes-ssd": "SSD-01 SSD-02 SSD-04 SSD-05 SSD-06 SSD-08",
    "writes-card": "SDC-01 SDC-03 SDC-05 SDC-06 SDC-07 SDC-09 SDC-10 SDC-12",
}
OF_WRITERS = "UTL-01 WRT-03 WRT-04 WRT-05 FRG-03"
OF_PHASES = (
    "THR-01 THR-02 THR-03 THR-04 THR-05 THR-06 THR-07 THR-08 THR-09 THR-10 THR-11 THR-12 THR-13 THR-14 IOP-01 IOP-02 IOP-03 IOP-04 IOP-05"
    " MET-01 MET-02 MET-03 MET-04 MET-05 "
) + " ".join(f"IOR{command}-{number:02}" for command in (1, 2) for number in range(1, 13))


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundles. Truth: the numbers that each experiment gives as the papers printed them."""
    draft.truth = {"study_results": []}
    for name, (given, ids) in READS.items():
        _add(draft, seed, "reads_modes", name, given, "S000", ids)
    _add(draft, seed, "reads_intrinsic", "reads-traces", TRACES, "S000", OF_TRACES)
    for name, given in _writes().items():
        _add(draft, seed, "sync_writes", name, {"is_exact": True, **given}, "S001", OF_WRITES[name])
    _add(draft, seed, "writers", "writers", {"runs": 5, "seek_us": 4000.0, "pause_ratio": 0.0}, "S004", OF_WRITERS)
    _add(draft, seed, "before_after", "before-after", {"is_printed": True}, "S002", OF_PHASES)


def _add(draft: Draft, seed: int, scenario: str, name: str, given: dict[str, Any], paper: str, ids: str) -> None:
    module = importlib.import_module(f"lab.simulate.{scenario}")
    experiment_id = f"papers-{name}"
    part = draft.parts.setdefault(experiment_id, Draft())
    module.write(part, {**module.DEFAULTS, **given, "experiment_id": experiment_id}, seed)
    draft.truth["study_results"] += [
        {"experiment_id": experiment_id, "id": f"{paper}-{number}", "verdict": "agrees"} for number in ids.split()
    ]


def _writes() -> dict[str, dict[str, Any]]:
    """Parameters of sync-writes by experiment: Mingardi and Vieira's means, with the spread that their t has at 30 runs."""
    disk = {"latency_us": 400.0, "flat_until_kb": 512, "flat_from_kb": 8192}
    slower = {**disk, "latency_us": 420}
    large = 4096 / sync_writes.latency_us(disk, 4096) * 1e6
    noise = 0.01
    card = {"latency_us": 1000.0, "flat_until_kb": 8, "flat_from_kb": 64}
    of_xfs = {size: size / sync_writes.latency_us(card, size) * 1e6 for size in sync_writes.BUFFERS_KB} | {1024: 25469, 16384: 25469}
    ssd = {"latency_us": 600, "flat_until_kb": 64, "flat_from_kb": 2048}
    return {
        "writes-disk": {
            "device_kind": "disk", "noise": noise, "configs": {"ext4": slower, "xfs": disk, "btrfs": {**disk, "latency_us": 800}},
            # t = 2.02
            "means": {"ext4": {4096: large * (1 + 2.02 * noise * (2 / 30) ** 0.5)}},
        },
        "writes-ssd": {
            "noise": 0.027, "configs": {"ext4": ssd, "xfs": ssd},
            "means": {"ext4": {128: 45675, 4096: 197912}, "xfs": {128: 50127, 4096: 230612}},
        },
        "writes-card": {
            "device_kind": "other", "noise": 0.22, "configs": {"ext4": card, "xfs": card, "f2fs": card},
            "means": {
                "xfs": of_xfs, "ext4": {1024: 24368},
                "f2fs": {size: mean * (1.25 if size <= 8 else 0.9 if size <= 64 else 0.667) for size, mean in of_xfs.items()}
                | {1024: 16321},
            },
        },
    }  # fmt: skip
