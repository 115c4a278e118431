"""Disks and tasks a second time: loops over the files of a bundle, written from the definitions and not from the models."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

from lab.tests.plain_reads import Row

MIB = 1 << 20


def counted(done: list[Row]) -> list[Row]:
    """Requests that count: reads and writes without error, in order of issue."""
    return [one for one in done if one["direction"] in ("read", "write") and not one["error"]]


def busy_ns(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of spans, as spans apart."""
    union: list[list[int]] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([start, end])
    return [(start, end) for start, end in union]


def pattern(done: list[Row]) -> Row:
    """The row of fct_access_patterns of one trace and device."""
    runs: list[int] = []
    distances, switches = [], 0
    before: Row | None = None
    for one in counted(done):
        end = before["sector"] + before["sectors"] if before else None
        if before and one["sector"] == end and one["direction"] == before["direction"]:
            runs[-1] += one["sectors"] * 512
        else:
            runs.append(one["sectors"] * 512)
            if before and one["sector"] == end:
                switches += 1
            elif before:
                distances.append(abs(one["sector"] - (end or 0)))
        before = one
    spans = busy_ns([(one["issued_ns"], one["completed_ns"]) for one in counted(done)])
    window = (max(end for _, end in spans) - spans[0][0]) / 1e9
    busy = sum(end - start for start, end in spans) / 1e9
    return {
        "requests": len(counted(done)), "bytes": sum(runs), "runs": len(runs), "mean_run_bytes": mean(runs), "seeks": len(distances),
        "direction_switches": switches, "mean_seek_sectors": mean(distances) if distances else None,
        "seeks_per_second": len(distances) / window, "seeks_per_mib": len(distances) / (sum(runs) / MIB), "window_seconds": window,
        "busy_seconds": busy, "utilisation": busy / window, "bandwidth_bytes_per_s": sum(runs) / window,
    }  # fmt: skip


def period(done: list[Row]) -> Row:
    """The row of fct_access_periods of one trace and device; the autocorrelation by its sums."""
    spans = busy_ns([(one["issued_ns"], one["completed_ns"]) for one in counted(done)])
    first = spans[0][0]
    bins = max(math.ceil((spans[-1][1] - first) / 10**9), 1)
    share = [
        sum(max(0, min(end - first, (bin + 1) * 10**9) - max(start - first, bin * 10**9)) for start, end in spans) / 1e9
        for bin in range(bins)
    ]
    gaps: list[int] = []
    for number, value in enumerate(share):
        if value < 0.05:
            if number and share[number - 1] < 0.05:
                gaps[-1] += 1
            else:
                gaps.append(1)
    middle = mean(share)
    spread = sum((value - middle) ** 2 for value in share)
    lags = range(1, bins // 2 + 2) if spread else range(0)  # a share that never changes has no correlation
    r = {lag: sum((share[t] - middle) * (share[t + lag] - middle) for t in range(bins - lag)) / spread for lag in lags}
    peaks = [(-r[lag], lag) for lag in list(lags)[1:-1] if r[lag] >= 0.3 and r[lag] > r[lag - 1] and r[lag] >= r[lag + 1]]
    best = min(peaks, default=None)
    return {
        "bins": bins, "idle_gaps": len(gaps), "mean_gap_seconds": mean(gaps) if gaps else None, "duty_cycle": middle,
        "period_seconds": best[1] if best else None, "period_correlation": -best[0] if best else None,
    }  # fmt: skip


def replay(done: list[Row], direction: str, unit: int = 64 * MIB) -> Row:
    """The row of fct_schedule_replays of one trace, device and direction: turns are taken one by one."""
    mine = [one for one in counted(done) if one["direction"] == direction and one["file_name"]]
    left: dict[str, list[Row]] = defaultdict(list)
    for one in mine:
        left[one["file_name"]].append(one)
    order, units = [], 0
    while any(left.values()):
        for waiting in left.values():
            taken = 0
            units += bool(waiting)
            while waiting and taken < unit:
                order.append(waiting.pop(0))
                taken += order[-1]["sectors"] * 512
    size = 512 * sum(one["sectors"] for one in mine)

    def breaks(requests: list[Row]) -> int:
        return sum(b["sector"] != a["sector"] + a["sectors"] for a, b in pairwise(requests))

    before = breaks(mine)
    after = breaks(order) if direction == "read" else sum(a["file_name"] != b["file_name"] for a, b in pairwise(order))
    row: Row = {"clients": len(left), "units": units}
    for name, seeks in (("before", before), ("after", after)):
        row[f"seeks_{name}"] = seeks
        row[f"mean_run_bytes_{name}"] = size / (1 + seeks)
        row[f"simulated_bandwidth_{name}_bytes_per_s"] = size / (seeks * 0.008 + size / 100e6)
    return row


def scaling(values: dict[int, dict[str, list[float]]]) -> dict[int, Row]:
    """Writers -> the row of fct_writer_scaling. values: of each trace or file, by writers and measure."""
    rows: dict[int, Row] = {}
    for writers, measures in values.items():
        row = rows[writers] = {}
        for measure, found in measures.items():
            single, name = values[1][measure], measure.removesuffix("_bytes_per_s").removesuffix("_bytes")
            row[measure], row[f"sd_{measure}"] = mean(found), stdev(found) if len(found) > 1 else None
            row[f"{name}_ratio"] = mean(found) / mean(single) if mean(single) else None
    return rows


def task_utilisation(file: Path) -> dict[str, Row]:
    """Node -> the row of fct_task_utilisation of one list of tasks."""
    nodes: dict[str, list[Row]] = defaultdict(list)
    for row in csv.DictReader(file.open()):
        nodes[row["node"]].append(
            {"slot": row["slot"], "start": float(row["started_s"]), "end": float(row["ended_s"]), "bytes": int(row["bytes"])}
        )
    found = {}
    for node, tasks in nodes.items():
        busy, gaps = 0.0, []
        for slot in {task["slot"] for task in tasks}:
            until = None
            for task in sorted((task for task in tasks if task["slot"] == slot), key=lambda task: task["start"]):
                if until is not None and task["start"] > until:
                    gaps.append(task["start"] - until)
                busy += max(0, task["end"] - max(task["start"], until or task["start"]))
                until = max(task["end"], until or task["end"])
        slots = len({task["slot"] for task in tasks})
        makespan = max(task["end"] for task in tasks) - min(task["start"] for task in tasks)
        found[node] = {
            "tasks": len(tasks), "slots": slots, "makespan_seconds": makespan, "busy_seconds": busy,
            "utilisation": busy / (makespan * slots), "idle_gaps": len(gaps), "mean_gap_seconds": mean(gaps) if gaps else None,
            "mean_task_seconds": mean(task["end"] - task["start"] for task in tasks),
            "mean_task_bytes": mean(task["bytes"] for task in tasks),
        }  # fmt: skip
    return found


def task_start_model(nodes: list[Row], heartbeat_s: float, jvm_s: float) -> Row:
    """The row of fct_task_start_models of one configuration, from its rows of fct_task_utilisation."""
    tasks, gaps = sum(row["tasks"] for row in nodes), sum(row["idle_gaps"] for row in nodes)
    read = sum(row["tasks"] * row["mean_task_seconds"] for row in nodes) / tasks
    wait = sum(row["idle_gaps"] * (row["mean_gap_seconds"] or 0) for row in nodes) / gaps if gaps else heartbeat_s / 2 + jvm_s
    ratio = max(1, 5 * (1 << 30) / (sum(row["tasks"] * row["mean_task_bytes"] for row in nodes) / tasks))
    saved = max(heartbeat_s - 0.3, 0) / 2

    def gain(less: float, more: float = 1) -> float:
        return read * more / (read * more + max(wait - less, 0)) - read / (read + wait)

    return {
        "read_seconds": read, "wait_seconds": wait, "predicted_utilisation": read / (read + wait),
        "observed_utilisation": sum(row["busy_seconds"] for row in nodes) / sum(row["makespan_seconds"] * row["slots"] for row in nodes),
        "gain_if_heartbeat_300ms": gain(saved), "gain_if_jvm_reused": gain(jvm_s), "gain_if_5gb_tasks": gain(0, ratio),
        "gain_all": gain(saved + jvm_s, ratio), "reason": None,
    }  # fmt: skip


def utilisation(text: str) -> dict[str, Row]:
    """Device -> the row of fct_device_utilisation of one file of diskstats."""
    seen: dict[str, list[list[float]]] = defaultdict(list)
    at = 0.0
    for line in text.splitlines():
        cells = line.split()
        if cells[0] == "TS":
            at = float(cells[1])
        else:
            seen[cells[2]].append([at, *(int(cells[place]) for place in (3, 5, 6, 7, 9, 10, 12))])
    found = {}
    for device, snapshots in seen.items():
        steps = [[b - a for a, b in zip(one, two, strict=True)] for one, two in pairwise(snapshots)]
        good = [step for step in steps if min(step[1:]) >= 0]
        seconds, reads, sectors_read, _, writes, sectors_written, _, busy = (sum(values) for values in zip(*good, strict=True))
        found[device] = {
            "observed_seconds": seconds, "busy_seconds": busy / 1000, "utilisation": busy / 1000 / seconds, "reads": reads,
            "bytes_read": sectors_read * 512, "writes": writes, "bytes_written": sectors_written * 512, "resets": len(steps) - len(good),
            "is_write_free": sectors_written == 0 if len(good) == len(steps) else None,
        }  # fmt: skip
    return found
