"""Scenario `before-after`: a drive that iozone and metarates measure before and after a stress by IOR. The change of each cell is planted.

The results of a cell and phase are shifted and scaled to have the planted mean and spread, so that verdicts are known and not only likely.
By default the changes are those that Layton printed of an Intel X25-E.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from lab.simulate.draft import Draft, manifest, with_moments

DEFAULTS: dict[str, Any] = {
    "experiment_id": "before-after",
    "runs": 10,
    "spread": 0.005,
    "stress_runs": 10,
    "write_amplification": 1.5,
    "changes": None,
    "is_awkward": False,
    "is_printed": False,
}
"""`spread`: standard deviation of a result over its mean. `changes`: cell -> percent by which before is better (below 0: after is);
null: those printed; "random": drawn. `is_awkward`: runs and cells lost, measured twice, without variance. `is_printed`: IOR says what it
said to Layton.
"""

CONFIG = "ext4"
THROUGHPUT_TESTS = (
    "write", "rewrite", "read", "reread", "random_read", "random_write", "backward_read", "record_rewrite", "stride_read", "fwrite",
    "frewrite", "fread", "freread",
)  # fmt: skip
OPS_TESTS = ("write", "read", "random_read", "random_write")
METADATA_TESTS = {"create_close": "created and closed", "stat": "stat'd", "utime": "utime'd"}
MB, KB = 1 << 20, 1 << 10
FILE_KB = 16 << 20
RECORDS = {"iozone_throughput": tuple(size * MB for size in (1, 4, 8, 16)), "iozone_ops": tuple(size * KB for size in (4, 8, 32, 64))}
PROCESSES = (1, 2, 4)
UNITS = {"iozone_throughput": "kB/s", "iozone_ops": "ops/s", "metadata": "ops/s"}
PASSES = {"iozone_throughput": "throughput", "iozone_ops": "", "metadata": ""}
HEADING = (
    "                                                              random    random     bkwd    record    stride\n"
    "      kB          reclen    write  rewrite    read   reread    read    write     read   rewrite      read   fwrite frewrite    fread"
    "  freread\n"
)
# the two command lines of the stress: tasks, segments, block and transfer (bytes); and operation -> mean bandwidth (MiB/s)
STRESSES = ((4, 200_000, 64 * KB, 4 * KB), (4, 14_000, MB, 256 * KB))
BANDWIDTHS = {"write": 198.0, "read": 242.0}
# segments and operation -> what IOR said to Layton: greatest, least and mean bandwidth, their standard deviation (MiB/s), mean time (s)
PRINTED = {
    (200_000, "write"): (198.43, 197.84, 198.19, 0.17, 252.28032),
    (200_000, "read"): (242.43, 240.65, 241.78, 0.47, 206.79841),
    (14_000, "write"): (197.95, 197.68, 197.79, 0.09, 283.12821),
    (14_000, "read"): (242.10, 241.06, 241.56, 0.31, 231.82731),
}

Cell = tuple[str, str, int]


def cells() -> Iterator[Cell]:
    """Benchmark, test and parameter of the 77 cells."""
    for benchmark, tests in (("iozone_throughput", THROUGHPUT_TESTS), ("iozone_ops", OPS_TESTS)):
        for test in tests:
            for record in RECORDS[benchmark]:
                yield benchmark, test, record
    for test in METADATA_TESTS:
        for processes in PROCESSES:
            yield "metadata", test, processes


def printed_changes() -> dict[Cell, float]:
    """Percent by which before is better than after, where Layton printed one."""
    found: dict[Cell, float] = {("iozone_throughput", "rewrite", 4 * MB): 3.5, ("iozone_throughput", "random_write", 4 * MB): 21.0}
    ranges: dict[str, tuple[float, ...]] = {
        "random_read": (13, 14, 15), "backward_read": (17, 18.5, 20), "stride_read": (22, 22.5, 23), "freread": (9, 11, 13)
    }  # fmt: skip
    for test, percents in ranges.items():
        found |= {("iozone_throughput", test, size * MB): percent for size, percent in zip((4, 8, 16), percents, strict=True)}
    by_test: dict[str, tuple[float, ...]] = {"random_write": (10.82, 8.73), "random_read": (-14.26, -12.6)}
    for test, percents in by_test.items():
        found |= {("iozone_ops", test, size * KB): percent for size, percent in zip((32, 64), percents, strict=True)}
    found["metadata", "create_close", 4] = 9
    found |= {("metadata", "stat", processes): percent for processes, percent in zip(PROCESSES, (-3.88, -6.58, -3.44), strict=True)}
    return found


def write(draft: Draft, parameters: dict[str, Any], seed: int) -> None:
    """Make the bundle. Truth: every result, every cell with its verdict, the stress and the write amplification."""
    rng = random.Random(seed)
    config = {"config_id": CONFIG, "filesystem_id": CONFIG, "factors": {"alignment_bytes": 131072, "stripe_width": 32}}
    draft.manifest = manifest(
        parameters, "before_after", "Synthetic drive before and after stress", {"kind": "ssd", "flash_cell": "SLC"},
        [{"filesystem_id": CONFIG, "type": "ext4", "block_bytes": 4096}], configs=[config],
    )  # fmt: skip
    draft.truth = {name: [] for name in ("fct_bench_results", "fct_phase_cells", "fct_stress_runs", "fct_write_amplification")}
    changes = _changes(parameters["changes"], rng)
    odd = _oddities(rng, parameters["runs"]) if parameters["is_awkward"] else {}
    values: dict[tuple[str, int, str, str, int], float] = {}  # phase, run, benchmark, test, parameter
    for cell in cells():
        _plant(draft, rng, parameters, cell, changes.get(cell, 0.0), odd, values)
    for phase in ("before", "after"):
        for run in range(1, parameters["runs"] + 1):
            _add_run(draft, phase, run, values, is_twice=odd.get((phase, run)) == "measured twice")
        if phase == "before":
            _add_stress(draft, rng, parameters)


def _changes(given: Any, rng: random.Random) -> dict[Cell, float]:
    if given is None:
        return printed_changes()
    if given == "random":
        return {cell: rng.choice([0.0, 0.0, 0.4, -0.4, 3.0, -3.0, 10.0, -10.0, 25.0]) for cell in cells()}
    return {cell: given["/".join(map(str, cell))] for cell in cells() if "/".join(map(str, cell)) in given}


def _oddities(rng: random.Random, runs: int) -> dict[Any, str]:
    """Oddities: by phase and run, or by phase and cell."""
    places = [(phase, run) for phase in ("before", "after") for run in range(1, runs + 1)]
    lost, twice = rng.sample(places, 2)
    one, two = rng.sample(list(cells()), 2)
    return {lost: "lost", twice: "measured twice", (rng.choice(["before", "after"]), one): "lost", ("both", two): "no variance"}


def _plant(
    draft: Draft,
    rng: random.Random,
    parameters: dict[str, Any],
    cell: Cell,
    percent: float,
    odd: dict[Any, str],
    values: dict[tuple[str, int, str, str, int], float],
) -> None:
    """Draw the results of a cell in both phases, and write down what must come out."""
    benchmark, test, parameter = cell
    before = rng.uniform(150_000, 250_000) if benchmark == "iozone_throughput" else rng.uniform(20_000, 60_000)
    means = {"before": before, "after": before / (1 + percent / 100) if percent >= 0 else before * (1 - percent / 100)}
    found: dict[str, list[float]] = {}
    for phase, middle in means.items():
        runs = [run for run in range(1, parameters["runs"] + 1) if odd.get((phase, run)) != "lost"]
        if odd.get((phase, cell)) == "lost":
            runs = []
        spread = 0.0 if ("both", cell) in odd else middle * parameters["spread"]
        found[phase] = [round(value, 3 if benchmark == "metadata" else None) for value in with_moments(rng, middle, spread, len(runs))]
        for run, value in zip(runs, found[phase], strict=True):
            values[phase, run, *cell] = value
            draft.truth["fct_bench_results"].append(
                {
                    "experiment_id": parameters["experiment_id"], "config_id": CONFIG, "phase": phase, "run_number": run,
                    "pass": PASSES[benchmark], "benchmark": benchmark, "test": test, "parameter": parameter,
                    "size_bytes": 0 if benchmark == "metadata" else FILE_KB * KB, "repetition": 1, "value": float(value),
                    "unit": UNITS[benchmark], "higher_is_better": True,
                }
            )  # fmt: skip
    few = min(map(len, found.values())) < 2
    difference = abs(means["before"] - means["after"])
    is_noise = difference <= parameters["spread"] * sum(means.values()) and ("both", cell) not in odd
    verdict = "inconclusive" if is_noise or not percent else f"{'before' if percent > 0 else 'after'}_better"
    draft.truth["fct_phase_cells"].append(
        {
            "experiment_id": parameters["experiment_id"], "config_id": CONFIG, "benchmark": benchmark, "test": test, "parameter": parameter,
            "size_bytes": 0 if benchmark == "metadata" else FILE_KB * KB, "n_before": len(found["before"]), "n_after": len(found["after"]),
            "mean_before": means["before"], "mean_after": means["after"],
            "verdict": "no data" if few else verdict,
        }
    )  # fmt: skip


def _add_run(draft: Draft, phase: str, run: int, values: dict[tuple[str, int, str, str, int], float], *, is_twice: bool) -> None:
    for benchmark, name in (("iozone_throughput", "throughput"), ("iozone_ops", "ops"), ("metadata", "metarates")):
        mine = {(test, parameter): value for (p, r, b, test, parameter), value in values.items() if (p, r, b) == (phase, run, benchmark)}
        if not mine:
            continue
        printed = _metarates if benchmark == "metadata" else _iozone_ops if benchmark == "iozone_ops" else _iozone
        tool = "metarates" if benchmark == "metadata" else "iozone"
        if is_twice:  # the later one counts
            earlier = {key: value * 2 for key, value in mine.items()}
            draft.add(f"first_{phase}_{name}_{run}.txt", printed(earlier), tool, CONFIG, run, phase=phase)
        draft.add(f"{phase}_{name}_{run}.txt", printed(mine), tool, CONFIG, run, phase=phase)


def _iozone(values: dict[tuple[str, int], float]) -> str:
    return _table("-Rb file.wks -s 16G -r 1M -r 4M -r 8M -r 16M", "", THROUGHPUT_TESTS, values)


def _iozone_ops(values: dict[tuple[str, int], float]) -> str:
    tests = ("write", "", "read", "", "random_read", "random_write")
    said = "\tOPS Mode. Output is in operations per second.\n\tNo retest option selected\n"
    return _table("-O -i 0 -i 1 -i 2 -e -+n -s 16G", said, tests, values)


def _table(options: str, said: str, tests: tuple[str, ...], values: dict[tuple[str, int], float]) -> str:
    """Table as iozone prints it: a value ends where the word of its column ends; a test that was not run leaves a blank, one of -+n a 0."""
    words = HEADING.splitlines()[1]
    ends, place = [], words.index("reclen") + len("reclen")
    for word in words[place:].split():
        place = words.index(word, place) + len(word)
        ends.append(place)
    lines = [
        f"\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.506 $\n\n{said}\tCommand line used: ./iozone {options}\n",
        HEADING,
    ]
    for record in sorted({parameter for _, parameter in values}):
        line = f"{FILE_KB:>8}{record // KB:>16}"
        for test, end in zip(tests, ends, strict=False):
            value = values.get((test, record), None if test else 0)
            if value is not None:
                line += f" {round(value)}".rjust(end - len(line))
        lines.append(line + "\n")
    return "".join(lines) + "\niozone test complete.\n"


def _metarates(values: dict[tuple[str, int], float]) -> str:
    lines = []
    for processes in PROCESSES:
        for test, said in METADATA_TESTS.items():
            if (test, processes) in values:
                total = values[test, processes]
                one = f"{total / processes:.6f} {test} per second"
                lines += [
                    f"rates at which files can be {said} with {processes} pes:",
                    f"max rate = {one}, min rate = {one} avg rate = {one}, total rate = {total:.6f} {test} per second\n",
                ]
    return "\n".join(lines)


def _add_stress(draft: Draft, rng: random.Random, parameters: dict[str, Any]) -> None:
    """IOR's summaries, and the drive's counters before and after each run."""
    amplification, host, media = parameters["write_amplification"], 1_000_000, 10**12
    for run in range(1, parameters["stress_runs"] + 1):
        units = rng.randint(100_000, 500_000)
        for offset_s in (0, 3600):
            log = {"nvme_smart_health_information_log": {"data_units_written": host, "media_errors": 0}}
            ocp = {"Physical media units written": {"hi": 0, "lo": media}}
            for name, document in (("health", log), ("ocp", ocp)):
                file = f"stress_{name}_{run}_{offset_s}.json"
                draft.add(file, json.dumps(document), "smartctl", CONFIG, run, phase="stress", offset_s=offset_s)
            if not offset_s:
                written = round(units * 512_000 * amplification)
                host, media = host + units, media + written
        draft.truth["fct_write_amplification"].append(
            {
                "experiment_id": parameters["experiment_id"], "config_id": CONFIG, "phase": "stress", "run_number": run, "device_id": "d",
                "host_bytes_written": units * 512_000, "media_bytes_written": written, "write_amplification": written / (units * 512_000),
            }
        )  # fmt: skip
        for number, stress in enumerate(STRESSES, 1):
            file = f"stress_ior{number}_{run}.txt"
            draft.add(file, _ior(draft, rng, parameters, file, run, *stress), "ior", CONFIG, run, phase="stress")


def _ior(
    draft: Draft, rng: random.Random, parameters: dict[str, Any], file: str, run: int, tasks: int, segments: int, block: int, transfer: int
) -> str:
    total = tasks * segments * block
    lines = [
        "IOR-2.10.2: MPI Coordinated Test of Parallel I/O\n",
        f"Command line used: ./IOR -a POSIX -b {block >> 10}k -F -i 10 -s {segments} -t {transfer >> 10}k -vv\n",
        "Operation  Max (MiB)  Min (MiB)  Mean (MiB)   Std Dev  Max (OPs)  Min (OPs)  Mean (OPs)   Std Dev  Mean (s)Op grep #Tasks tPN reps"
        "  fPP reord reordoff reordrand seed segcnt blksiz xsize aggsize",
        "---------  ---------  ---------  ----------   -------  ---------  ---------  ----------   -------   -------",
    ]
    for operation, bandwidth in BANDWIDTHS.items():
        middle = round(bandwidth * rng.gauss(1, 0.002), 2)
        greatest, least, sd, seconds = round(middle + 0.3, 2), round(middle - 0.4, 2), 0.17, round(total / middle / MB, 5)
        if parameters["is_printed"]:
            greatest, least, middle, sd, seconds = PRINTED[segments, operation]
        lines.append(
            f"{operation:<9} {greatest:>10.2f} {least:>10.2f} {middle:>11.2f} {sd:>9.2f} 0.25 0.25 0.25 0.00 {seconds:.5f}   "
            f"{tasks} {tasks} 10 1 0 1 0 0 {segments} {block} {transfer} {total} -1 POSIX EXCEL"
        )
        draft.truth["fct_stress_runs"].append(
            {
                "experiment_id": parameters["experiment_id"], "config_id": CONFIG, "phase": "stress", "run_number": run, "file": file,
                "operation": operation, "test": 1, "max_mib_per_s": greatest, "min_mib_per_s": least, "mean_mib_per_s": middle,
                "sd_mib_per_s": sd, "mean_seconds": seconds, "tasks": tasks, "repetitions": 10, "segments": segments,
                "block_bytes": block, "transfer_bytes": transfer, "aggregate_bytes": total, "is_size_consistent": True,
                "is_time_consistent": True,
            }
        )  # fmt: skip
    return "\n".join(lines) + "\n\n"
