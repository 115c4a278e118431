"""Scenario `tasks`: nodes whose slots read the data of a task, then wait for the next; the disk of a node is busy in the same rhythm.

One configuration waits as its heartbeat and JVM starts say; another has one task a slot, so that its wait is never seen.
"""

from __future__ import annotations

import random
from typing import Any

from lab.simulate.draft import Draft, Event, block_lines, manifest

DEFAULTS: dict[str, Any] = {
    "experiment_id": "tasks",
    "runs": 2,
    "nodes": 2,
    "slots": 2,
    "tasks_per_slot": 12,
    "read_s": 4.0,
    "heartbeat_s": 6.0,
    "jvm_s": 1.0,
    "task_bytes": 64 << 20,
    "latency_ms": 250,
}
"""`tasks_per_slot`: of the configuration `small-tasks`. `latency_ms`: of a request of the disk; read_s is a multiple of it."""
DEVICE = "8,16"
CONFIGS = ("small-tasks", "one-task")


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundle. Truth: waits, shares of time and the period."""
    rng = random.Random(seed)
    factors = {"heartbeat_seconds": parameters["heartbeat_s"], "jvm_reuse": not parameters["jvm_s"]}
    configs = [{"config_id": name, "device_id": "d", "factors": factors} for name in CONFIGS]
    draft.manifest = manifest(parameters, "hdfs", "Synthetic tasks", {"kind": "disk", "major_minor": DEVICE}, configs=configs)
    wait_s = parameters["heartbeat_s"] / 2 + parameters["jvm_s"]
    cycle_s = parameters["read_s"] + wait_s
    draft.truth = {"planted": [], "planted_periods": []}
    for config in CONFIGS:
        count = parameters["tasks_per_slot"] if config == CONFIGS[0] else 1
        for run in range(1, parameters["runs"] + 1):
            draft.add(f"{config}_{run}.csv", _tasks(rng, parameters, count, cycle_s), "tasks", config, run)
        row = {
            "config_id": config, "read_seconds": parameters["read_s"], "wait_seconds": wait_s,
            "predicted_utilisation": parameters["read_s"] / cycle_s,
            "observed_utilisation": count * parameters["read_s"] / (count * cycle_s - wait_s),
        }  # fmt: skip
        draft.truth["planted"].append(row)
    count = parameters["tasks_per_slot"]
    draft.add("disk.ftrace", _trace(parameters, count, cycle_s), "ftrace", CONFIGS[0], 1)
    row = {"period_seconds": cycle_s, "duty_cycle": count * parameters["read_s"] / (count * cycle_s - wait_s), "idle_gaps": count - 1}
    draft.truth["planted_periods"].append(row)


def _tasks(rng: random.Random, parameters: dict[str, Any], count: int, cycle_s: float) -> str:
    rows = []
    for node in range(parameters["nodes"]):
        begun = rng.randrange(0, 100) / 4
        for slot in range(parameters["slots"]):
            for number in range(count):
                start = begun + number * cycle_s
                task = f"t{node}-{slot}-{number}"
                rows.append(f"{task},node{node},{slot},{start:.3f},{start + parameters['read_s']:.3f},{parameters['task_bytes']}")
    rng.shuffle(rows)
    return "\n".join(["task_id,node,slot,started_s,ended_s,bytes", *rows]) + "\n"


def _trace(parameters: dict[str, Any], count: int, cycle_s: float) -> str:
    """Requests back to back while a task reads."""
    events: list[Event] = []
    latency_ns, sector = parameters["latency_ms"] * 10**6, 4096
    for number in range(count):
        for request in range(round(parameters["read_s"] * 1000 / parameters["latency_ms"])):
            at = round(number * cycle_s * 1000) * 10**6 + request * latency_ns
            events += [(at, DEVICE, "D", "R", f"{sector} + 2048 [java]"), (at + latency_ns, DEVICE, "C", "R", f"{sector} + 2048 [0]")]
            sector += 2048
    return "\n".join(["# tracer: blk", "#", *block_lines(events)]) + "\n"
