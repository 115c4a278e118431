"""Scenario `sync-writes`: iozone over 13 buffers on several filesystems, of which it is known where latency and throughput are flat.

A write of b kB takes `latency_us` up to `flat_until_kb`, then grows with the square root of b up to `flat_from_kb`, then with b.
"""

from __future__ import annotations

import random
from typing import Any

from lab.simulate.draft import Draft, manifest, with_moments

DEFAULTS: dict[str, Any] = {
    "experiment_id": "sync-writes",
    "runs": 30,
    "noise": 0.03,
    "file_kb": 16384,
    "is_awkward": False,
    "is_exact": False,
    "device_kind": "ssd",
    "block_bytes": 4096,
    "means": {},
    "configs": {
        "ext4": {"latency_us": 400, "flat_until_kb": 256, "flat_from_kb": 2048},
        "xfs": {"latency_us": 380, "flat_until_kb": 512, "flat_from_kb": 4096},
        "btrfs": {"latency_us": 800, "flat_until_kb": 64, "flat_from_kb": 1024},
    },
}
"""`noise`: standard deviation of a result over its mean. `is_awkward`: everything that iozone and people do to such bundles.
`is_exact`: results have the planted mean and spread themselves. `means`: of a configuration, throughput (kB/s) by buffer (kB), where it is
not that of the formula."""

BUFFERS_KB = tuple(4 << step for step in range(13))
HEADING = (
    "                                                              random    random     bkwd    record    stride\n"
    "              {kb}  reclen    write  rewrite    read    reread    read     write     read   rewrite      read   fwrite"
    " frewrite    fread  freread\n"
)
OPTIONS = {"throughput": "-i 0 -a -n {n}k -g {n}k -o -I -e", "latency": "-i 0 -a -n {n}k -g {n}k -o -I -e -N"}
SAID = {"throughput": "", "latency": "\tMicroseconds/op Mode. Output is in microseconds per operation.\n"}
Factors = dict[tuple[int, str], float]
"""Buffer (kB) and test -> by what the mean is multiplied; empty: drawn."""
UNITS = {"throughput": "kB/s", "latency": "us"}
TESTS = {"write": 1.0, "rewrite": 0.6}
"""Test -> its latency over that of a write."""
Values = dict[tuple[int, int, str], int]
"""File and buffer (kB) and test -> what iozone prints."""


def latency_us(config: dict[str, float], buffer_kb: int) -> float:
    """Mean latency of a write."""
    flat, steep = config["flat_until_kb"], config["flat_from_kb"]
    if buffer_kb <= flat:
        return config["latency_us"]
    if buffer_kb <= steep:
        return float(config["latency_us"] * (buffer_kb / flat) ** 0.5)
    return float(config["latency_us"] * (steep / flat) ** 0.5 * buffer_kb / steep)


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundle. Truth: every result that must be there, and the planted sizes."""
    rng = random.Random(seed)
    configs: dict[str, dict[str, float]] = parameters["configs"]
    filesystems = [{"filesystem_id": name, "type": name, "block_bytes": parameters["block_bytes"]} for name in configs]
    draft.manifest = manifest(
        parameters, "sync_writes", "Synthetic synchronous writes", {"kind": parameters["device_kind"]}, filesystems,
        configs=[{"config_id": name, "filesystem_id": name} for name in configs],
    )  # fmt: skip
    draft.truth = {"fct_bench_results": [], "planted": []}
    oddities = _oddities(rng, configs, parameters["runs"]) if parameters["is_awkward"] else {}
    for config_id, config in configs.items():
        draft.truth["planted"].append({"config_id": config_id, **config})
        for pass_ in OPTIONS:
            exact = _exact(rng, parameters) if parameters["is_exact"] else {}
            for run in range(1, parameters["runs"] + 1):
                odd = oddities.get((config_id, pass_, run), "")
                factors = {key: of_runs[run - 1] for key, of_runs in exact.items()}
                _add_run(draft, rng, parameters, config_id, pass_, run, odd, factors)


def _exact(rng: random.Random, parameters: dict[str, Any]) -> dict[tuple[int, str], list[float]]:
    """By what the results of a buffer and test are multiplied, run after run."""
    drawn = {}
    for buffer_kb in BUFFERS_KB:
        for test in TESTS:
            drawn[buffer_kb, test] = with_moments(rng, 1.0, parameters["noise"], parameters["runs"])
    return drawn


def _add_run(
    draft: Draft, rng: random.Random, parameters: dict[str, Any], config_id: str, pass_: str, run: int, odd: str, factors: Factors
) -> None:
    values = _drawn(rng, parameters, config_id, pass_, factors, has_small_files=odd == "small files")
    name = f"{config_id}_{pass_}_{run}.txt"
    if odd == "lost":
        return
    if odd == "measured twice":  # the later one counts
        earlier = _drawn(rng, parameters, config_id, pass_, {}, has_small_files=False)
        draft.add(f"first_{name}", printed(earlier, pass_, parameters["file_kb"]), "iozone", config_id, run, **{"pass": pass_})
    draft.add(name, printed(values, pass_, parameters["file_kb"], odd), "iozone", config_id, run, **{"pass": pass_})
    draft.truth["fct_bench_results"] += [
        {
            "experiment_id": parameters["experiment_id"], "config_id": config_id, "phase": "", "run_number": run, "pass": pass_,
            "benchmark": f"iozone_{pass_}", "test": test, "parameter": buffer_kb * 1024, "size_bytes": file_kb * 1024, "repetition": 1,
            "value": float(value), "unit": UNITS[pass_], "higher_is_better": pass_ == "throughput",
        }
        for (file_kb, buffer_kb, test), value in values.items()
    ]  # fmt: skip


def _drawn(
    rng: random.Random, parameters: dict[str, Any], config_id: str, pass_: str, factors: Factors, *, has_small_files: bool
) -> Values:
    values: Values = {}
    means = {int(size): mean for size, mean in parameters["means"].get(config_id, {}).items()}
    for file_kb in (64, parameters["file_kb"]) if has_small_files else (parameters["file_kb"],):
        for buffer_kb in BUFFERS_KB:
            if buffer_kb > file_kb:
                continue
            planned = buffer_kb / means[buffer_kb] * 1e6 if buffer_kb in means else latency_us(parameters["configs"][config_id], buffer_kb)
            for test, share in TESTS.items():
                latency = planned * share
                mean = latency if pass_ == "latency" else buffer_kb / latency * 1e6
                factor = factors[buffer_kb, test] if factors else rng.gauss(1, parameters["noise"])
                values[file_kb, buffer_kb, test] = max(1, round(mean * max(0.01, factor)))
    return values


def printed(values: Values, pass_: str, file_kb: int, odd: str = "") -> str:
    """Output of iozone. odd: a way in which it differs from one version, option or machine to the other."""
    options = OPTIONS[pass_].format(n=file_kb)
    head = (
        "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.506 $\n\n\tAuto Mode\n\tSYNC Mode. \n"
        f"\tO_DIRECT feature enabled\n\tInclude fsync in write timing\n{SAID[pass_]}"
        f"\tCommand line used: ./iozone {'-R ' if odd.startswith('-R') else ''}{options}\n"
    )
    table = [HEADING.format(kb="KB" if odd == "old heading" else "kB")]
    for file, buffer in dict.fromkeys((file, buffer) for file, buffer, _ in values):
        table.append(f"{file:>16}{buffer:>8}{values[file, buffer, 'write']:>9}{values[file, buffer, 'rewrite']:>9}{'':100}\n")
    if odd == "kernel line":
        table.insert(4, "[12345.678901] sd 0:0:0:0: [sda] Synchronizing SCSI cache\n")
    reports = [f'\n"{title} report"\n{_report(values, test)}' for title, test in (("Writer", "write"), ("Re-writer", "rewrite"))]
    if odd == "-R only":
        return head + "iozone test complete.\nExcel output is below:\n" + "".join(reports)
    below = "Excel output is below:\n" + "".join(reports) if odd == "-R beside a table" else ""
    return head + "".join(table) + "\niozone test complete.\n" + below


def _report(values: Values, test: str) -> str:
    buffers = sorted({buffer for _, buffer, _ in values})
    sizes = "  ".join(f'"{buffer}"' for buffer in buffers)
    rows = [f"        {sizes}\n"]
    for file in sorted({file for file, _, _ in values}):
        # a combination of sizes that was not run is 0
        rows.append(f'"{file}"   {"  ".join(str(values.get((file, buffer, test), 0)) for buffer in buffers)} \n')
    return "".join(rows)


def _oddities(rng: random.Random, configs: dict[str, Any], runs: int) -> dict[tuple[str, str, int], str]:
    """Which run of which configuration and pass is odd, and how."""
    kinds = ["lost", "measured twice", "old heading", "kernel line", "-R only", "-R beside a table", "small files"]
    places = [(config, pass_, run) for config in configs for pass_ in OPTIONS for run in range(1, runs + 1)]
    return dict(zip(rng.sample(places, min(len(kinds), len(places))), kinds, strict=False))
