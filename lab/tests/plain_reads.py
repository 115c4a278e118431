"""Traces and file reads a second time: loops over the files of a bundle, written from the definitions and not from the models."""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, mean, median, stdev
from typing import Any

from scipy.stats import ks_2samp, poisson, quantile_test, t, ttest_1samp, variation

Row = dict[str, Any]
Key = tuple[Any, ...]


def listings(bundle: Path) -> list[Row]:
    return list(csv.DictReader((bundle / "runs.csv").open()))


def extents(bundle: Path, partition_start: int = 0) -> dict[int, dict[tuple[str, int], Row]]:
    """Run -> (file name, extent) -> where it lies, of a bundle with one configuration a map."""
    found: dict[int, dict[tuple[str, int], Row]] = {}
    for listing in listings(bundle):
        if listing["tool"] != "filefrag":
            continue
        here = found.setdefault(int(listing["run_number"]), {})
        for line in (bundle / listing["file"]).read_text().splitlines():
            if line.startswith("File size of"):
                name = line.split()[3].rsplit("/", 1)[1]
                unit = int(line.split()[-2])
            elif ".." in line:
                cells = line.replace("..", ":").replace(" ", "").split(":")
                index, logical, physical, length = int(cells[0]), int(cells[1]), int(cells[3]), int(cells[5])
                here[name, index] = {
                    "logical_start_bytes": logical * unit, "sector": partition_start + physical * unit // 512, "sectors": length * unit // 512,  # noqa: E501
                }  # fmt: skip
    return found


def requests(text: str, device: str) -> tuple[list[Row], Row]:
    """Completed requests of one device of a trace in order of issue, and its row of fct_trace_counts."""
    events = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if len(cells) < 6 or "," not in cells[0] or cells[0] != device:
            continue
        at = next(place for place, cell in enumerate(cells) if "." in cell)
        seconds, ns = cells[at].split(".")
        action, rwbs, rest = cells[at + 2], cells[at + 3], cells[at + 4 :]
        if action in "QDCR" and len(rest) > 2 and rest[1] == "+":
            direction = "read" if "R" in rwbs else "write" if "W" in rwbs else "discard" if "D" in rwbs else None
            error = int(rest[3].strip("[]")) if action == "C" else 0
            events.append((int(seconds) * 10**9 + int(ns), number, action, direction, int(rest[0]), int(rest[2]), error))
    events.sort()
    counts = dict.fromkeys(("issues", "unmatched_completions", "requeues", "requeued_issues", "errors"), 0)
    queued: list[tuple[Any, ...]] = []
    still: list[Row] = []
    done: list[Row] = []
    for time, number, action, direction, sector, sectors, error in events:
        if direction is None or not sectors:
            continue
        alike = [one for one in still if (one["direction"], one["at"], one["left"]) == (direction, sector, sectors)]
        if action == "Q":
            queued.append((time, direction, sector, sectors))
        elif action == "D":
            counts["issues"] += 1
            since = [q[0] for q in queued if q[1] == direction and q[2] <= sector < q[2] + q[3]]
            still.append(
                {
                    "direction": direction, "sector": sector, "sectors": sectors, "at": sector, "left": sectors, "issued_ns": time,
                    "line": number, "queued_ns": since[-1] if since else time, "error": 0,
                }
            )  # fmt: skip
        elif action == "R":
            counts["requeues"] += 1
            if alike:
                counts["requeued_issues"] += 1
                still.remove(alike[-1])
        elif alike:
            one = alike[0]
            still.remove(one)
            done.append({**one, "completed_ns": time, "error": error or one["error"]})
        else:
            larger = [one for one in still if (one["direction"], one["at"]) == (direction, sector) and one["left"] > sectors]
            if larger:
                larger[0]["at"] += sectors
                larger[0]["left"] -= sectors
                larger[0]["error"] = error or larger[0]["error"]
            else:
                counts["unmatched_completions"] += 1
    done.sort(key=lambda one: (one["issued_ns"], one["line"]))
    for index, one in enumerate(done, 1):
        one["request_index"] = index
        one["latency_us"] = (one["completed_ns"] - one["issued_ns"]) / 1000
        del one["at"], one["left"], one["line"]
    counts |= {"requests": len(done), "unmatched_issues": len(still), "errors": sum(one["error"] != 0 for one in done)}
    return done, counts


def place_in_files(done: list[Row], here: dict[tuple[str, int], Row]) -> None:
    """Add file_name, extent_index, logical_start_bytes and read_index of requests of one trace."""
    reads: dict[str, int] = defaultdict(int)
    for one in done:
        one |= {"file_name": None, "extent_index": None, "logical_start_bytes": None, "read_index": None}
        for (name, index), extent in here.items():
            if extent["sector"] <= one["sector"] < extent["sector"] + extent["sectors"]:
                one |= {
                    "file_name": name, "extent_index": index,
                    "logical_start_bytes": extent["logical_start_bytes"] + (one["sector"] - extent["sector"]) * 512,
                }  # fmt: skip
        if one["file_name"] and one["direction"] == "read" and not one["error"]:
            if one["logical_start_bytes"] == 0 or not reads[one["file_name"]]:
                reads[one["file_name"]] += 1
            one["read_index"] = reads[one["file_name"]]


def reads_of(done: list[Row], offset_s: float) -> dict[tuple[str, int], Row]:
    """(file, read) -> its row of fct_file_reads."""
    groups = defaultdict(list)
    for one in done:
        if one["read_index"]:
            groups[one["file_name"], one["read_index"]].append(one)
    rows = {}
    for key, members in groups.items():
        busy, until = 0, -1
        for start, end in sorted((one["queued_ns"], one["completed_ns"]) for one in members):
            busy += max(0, end - max(start, until))
            until = max(until, end)
        first, last = min(one["queued_ns"] for one in members), max(one["completed_ns"] for one in members)
        size = 512 * sum(one["sectors"] for one in members)
        rows[key] = {
            "bytes": size, "requests": len(members), "started_s": offset_s + first / 1e9, "ended_s": offset_s + last / 1e9,
            "active_seconds": busy / 1e9, "throughput_bytes_per_s": size / (busy / 1e9),
        }  # fmt: skip
    return rows


def extent_reads(traces: list[tuple[Key, list[Row], dict[tuple[str, int], Row]]], large: int) -> dict[Key, Row]:
    """(run, file, read, extent) -> its row of fct_extent_reads, over all traces of a configuration."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    size_of = {}
    for key, done, here in traces:
        for one in done:
            if one["read_index"]:
                name = (*key, one["file_name"], one["read_index"], one["extent_index"])
                groups[name].append(one)
                size_of[name] = here[one["file_name"], one["extent_index"]]["sectors"] * 512
    late = [one for name, members in groups.items() if size_of[name] >= large for one in members[len(members) // 2 :]]
    commonest = max(Counter(one["sectors"] for one in late).items(), key=lambda item: (item[1], item[0]))[0]
    latencies = [one["latency_us"] for one in late if one["sectors"] == commonest]
    middle = median(latencies)
    normal = middle + 3 * 1.4826 * median(abs(value - middle) for value in latencies)
    rows = {}
    for name, members in groups.items():
        n = len(members)
        k = next((k for k in range(n) if not any(one["latency_us"] > normal for one in members[k : min(k + 3, n)])), n)
        rows[name] = {
            "extent_bytes": size_of[name], "requests": n, "normal_latency_us": normal, "recovery_requests": k, "recovery_ratio": k / n,
            "is_recovered": k < n, "recovery_us": (members[k - 1]["completed_ns"] - members[0]["queued_ns"]) / 1000 if k else 0,
        }  # fmt: skip
    return rows


def overlaps(done: list[Row]) -> dict[Key, Row]:
    """(file, read, position) -> its row of fct_request_overlaps."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    for one in done:
        if one["read_index"]:
            groups[one["file_name"], one["read_index"]].append(one)
    rows = {}
    for key, members in groups.items():
        for place in range(1, len(members) - 1):
            e1 = members[place - 1]["completed_ns"]
            s2, e2 = members[place]["issued_ns"], members[place]["completed_ns"]
            s3 = members[place + 1]["issued_ns"]
            name = "disjoint" if s2 >= e1 or s3 >= e2 else "nested" if e2 <= e1 else "deeper" if s3 <= e1 else "overlap"
            rows[*key, place + 1] = {
                "overlap_class": name, "imbalance_us": abs((e2 - s3) - (e1 - s2)) / 1000 if name == "overlap" else None,
            }  # fmt: skip
    return rows


def listed_reads(text: str) -> list[Row]:
    """Reads of a list in order of their start."""
    rows = []
    for row in csv.DictReader(text.splitlines()):
        start, end, size = float(row["started_s"]), float(row["ended_s"]), int(row["bytes"])
        speed = size / (float(row["active_s"]) if row["active_s"] else end - start)
        rows.append({"file": row["file_name"], "start": start, "end": end, "middle": (start + end) / 2, "speed": speed, "bytes": size})
    return sorted(rows, key=lambda row: row["start"])


def around(one: Row, kept: list[Row]) -> float | None:
    """The median of the reads whose middle is within half an hour of that of one."""
    near = [other["speed"] for other in kept if abs(other["middle"] - one["middle"]) <= 1800]
    return median(near) if near else None


def least_drop(reads: list[Row]) -> float:
    """Least drop of a slow read below its baseline, for one configuration and phase."""
    shares = [one["speed"] / (around(one, reads) or math.nan) for one in reads]
    return max(0.08, 3 * 1.4826 * median(abs(share - median(shares)) for share in shares))


def pauses(reads: list[Row]) -> list[int]:
    """Number of pauses before each read."""
    gaps = [one["start"] - max(other["end"] for other in reads[:place]) for place, one in enumerate(reads) if place]
    counts = [0]
    for gap in gaps:
        counts.append(counts[-1] + (gap > 10 and gap > 10 * median(gaps)))
    return counts


def _in_order(low: list[int], reads: list[Row]) -> list[int]:
    """Places of low reads without those of slow files; none where low reads and others come in random order."""
    shares: dict[str, list[bool]] = defaultdict(list)
    known = {*low}
    for place, one in enumerate(reads):
        shares[one["file"]].append(place in known)
    if min(map(mean, shares.values())) <= 0.1:
        low = [place for place in low if len(of := shares[reads[place]["file"]]) < 5 or mean(of) < 0.9]
    n, m = len(low), len(reads) - len(low)
    if min(n, m) < 10:
        return low
    known = {*low}
    runs = 1 + sum((place in known) != (place + 1 in known) for place in range(len(reads) - 1))
    variance = 2 * n * m * (2 * n * m - n - m) / ((n + m) ** 2 * (n + m - 1))
    return low if NormalDist().cdf((runs - 1 - 2 * n * m / (n + m)) / math.sqrt(variance)) < 0.05 else []


def temporal(reads: list[Row]) -> list[Row]:
    """Rows of fct_temporal_slowdowns of one configuration."""
    first = [around(one, reads) for one in reads]
    share = 1 - least_drop(reads)
    usual = [one for one, base in zip(reads, first, strict=True) if one["speed"] >= share * (base or 0)]
    base = [around(one, usual) or before for one, before in zip(reads, first, strict=True)]
    low = [place for place, one in enumerate(reads) if one["speed"] < share * (base[place] or 0)]
    low = _in_order(low, reads)
    before = pauses(reads)
    stretches: list[list[int]] = []
    for place in low:
        if stretches and place - stretches[-1][-1] <= 2 and before[place] == before[stretches[-1][-1]]:
            stretches[-1].append(place)
        else:
            stretches.append([place])
    rows = []
    for stretch in stretches:
        if len(stretch) < 2:
            continue
        members = reads[stretch[0] : stretch[-1] + 1]
        speeds, baseline = [one["speed"] for one in members], base[stretch[0]]
        assert baseline is not None
        rows.append(
            {
                "started_s": min(one["start"] for one in members), "ended_s": max(one["end"] for one in members), "reads": len(members),
                "min_throughput_bytes_per_s": min(speeds), "mean_throughput_bytes_per_s": mean(speeds), "baseline_bytes_per_s": baseline,
                "drop_ratio": 1 - min(speeds) / baseline, "mean_drop_ratio": 1 - mean(speeds) / baseline,
            }
        )  # fmt: skip
    return rows


def period(instances: list[Row], reads: list[Row]) -> Row:
    """The row of fct_temporal_periods."""
    starts = [one["started_s"] for one in instances]
    gaps = [b - a for a, b in pairwise(starts)]
    paces = [sum(a <= one["start"] < b for one in reads) for a, b in pairwise(starts)]
    period_cv, reads_cv = (stdev(values) / mean(values) if len(values) > 1 else None for values in (gaps, paces))
    trigger = None
    if len(gaps) >= 3 and period_cv is not None and reads_cv is not None:
        small, large = sorted((period_cv, reads_cv))
        trigger = "undecided" if large < 1.5 * small or large == small else "time" if period_cv == small else "reads"
    return {
        "reads": len(reads), "least_drop_ratio": least_drop(reads), "instances": len(instances),
        "mean_period_seconds": mean(gaps) if gaps else None,
        "median_period_seconds": median(gaps) if gaps else None, "period_cv": period_cv, "reads_cv": reads_cv, "trigger": trigger,
    }  # fmt: skip


Ends = tuple[float | None, float | None]
"""Ends of a 95% interval."""


def ratio_interval(a: list[float], b: list[float]) -> Ends:
    """Interval of the mean of one sample over that of another: the delta method, with Welch's degrees of freedom."""
    if min(len(a), len(b)) < 2 or not mean(a) or not mean(b) or max(stdev(a), stdev(b)) == 0:
        return None, None
    parts = [(variation(values, ddof=1) ** 2 / len(values), len(values) - 1) for values in (a, b)]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / free for part, free in parts)
    low, high = t.interval(0.95, freedom, loc=mean(a) / mean(b), scale=mean(a) / mean(b) * math.sqrt(variance))
    return low, high


def median_drop_interval(before: list[float], after: list[float]) -> Ends:
    """Interval of how far the median falls: each median has an interval at 97.5%."""
    if min(len(before), len(after)) < 7:
        return None, None
    of_before, of_after = (quantile_test(values).confidence_interval(0.975) for values in (before, after))
    return 1 - of_after.high / of_before.low, 1 - of_after.low / of_before.high


def hourly_drop_interval(hours: dict[int, list[float]], onset: int) -> Ends:
    """The same of the medians of hours."""
    medians = {hour: median(speeds) for hour, speeds in hours.items()}
    return median_drop_interval(
        [value for hour, value in medians.items() if hour < onset], [value for hour, value in medians.items() if hour >= onset]
    )


def compared(name: str, ends: Ends, value: float, above: str, below: str, verdict: str = "verdict") -> Row:
    """The ends of an interval and its verdict as columns."""
    low, high = ends
    said = "inconclusive" if low is None or high is None or low <= value <= high else above if low > value else below
    return {f"low_{name}": low, f"high_{name}": high, verdict: said}


def permanent(reads: list[Row]) -> Row:
    """The row of fct_permanent_slowdowns of one file's reads."""
    hours: dict[int, list[float]] = defaultdict(list)
    for one in reads:
        hours[int(one["middle"] // 3600)].append(one["speed"])
    for h in sorted(hours):
        before = [speed for hour, speeds in hours.items() if hour < h for speed in speeds]
        after = [speed for hour, speeds in hours.items() if hour >= h for speed in speeds]
        if len(before) < 20 or not (len(after) >= 20 or reads[-1]["middle"] - h * 3600 >= 86400):
            continue
        q1, q3 = nearest_rank(before, 0.25), nearest_rank(before, 0.75)
        middle = (median(before) + median(after)) / 2
        medians = {hour: median(speeds) for hour, speeds in hours.items() if hour >= h}
        if medians[h] >= q1 - 1.5 * (q3 - q1) or any(value > middle for value in medians.values()):
            continue
        settled = min((hour for hour, value in medians.items() if value <= 1.05 * median(after)), default=None)
        return {
            "reads": len(reads), "is_tested": True, "onset_hour": h, "drop_ratio": 1 - median(after) / median(before),
            "set_in_hours": None if settled is None else settled - h + 1,
            "reads_before": len(before), "q1_before_bytes_per_s": q1, "q3_before_bytes_per_s": q3, "reads_after": len(after),
            "q1_after_bytes_per_s": nearest_rank(after, 0.25), "q3_after_bytes_per_s": nearest_rank(after, 0.75),
            **compared("drop_ratio", hourly_drop_interval(hours, h), 0, "slower", "faster"),
        }  # fmt: skip
    known = sorted(hours)
    is_tested = any(
        sum(len(hours[hour]) for hour in known if hour < h) >= 20
        and (sum(len(hours[hour]) for hour in known if hour >= h) >= 20 or reads[-1]["middle"] - h * 3600 >= 86400)
        for h in known
    )
    nothing = ("onset_hour", "drop_ratio", "set_in_hours", "reads_before", "reads_after", "low_drop_ratio", "high_drop_ratio", "verdict")
    return {"reads": len(reads), "is_tested": is_tested, **dict.fromkeys(nothing)}


def single(done: list[Row]) -> list[Row]:
    """Reads without error that share no time with another request of the device, of one trace."""

    def is_alone(one: Row) -> bool:
        return not any(
            other is not one and other["issued_ns"] < one["completed_ns"] and one["issued_ns"] < other["completed_ns"] for other in done
        )

    return [one for one in done if one["direction"] == "read" and not one["error"] and is_alone(one)]


def copies(text: str) -> list[tuple[int, float]]:
    """Bytes and microseconds of each copy of one record that dd reports."""
    found, records = [], None
    for line in text.splitlines():
        if line.endswith("records in"):
            records = line.split()[0]
        elif "copied" in line and records == "1+0":
            found.append((int(line.split()[0]), float(line.split("copied, ")[1].split()[0]) * 1e6))
    return found


def single_requests(latencies: dict[tuple[str, int], list[float]]) -> dict[tuple[str, int], Row]:
    """(phase, bytes) -> the row of fct_single_requests of one configuration."""
    rows: dict[tuple[str, int], Row] = {}
    for (phase, size), values in latencies.items():
        rows[phase, size] = {"n": len(values), "median_latency_us": median(values), "increase_us": None, "increase_ratio": None}
        if phase == "after" and ("before", size) in latencies:
            before = median(latencies["before", size])
            rows[phase, size] |= {"increase_us": median(values) - before, "increase_ratio": (median(values) - before) / before}
    return rows


def nearest_rank(values: list[float], share: float) -> float:
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def latency_shifts(before: list[float], after: list[float]) -> dict[int, Row]:
    """Percentile -> the row of fct_latency_shifts of one file."""
    if not before or not after:
        return {}
    rows = {}
    for percentile in range(1, 100):
        # whole numbers: 0.07 * 100 is more than 7
        ends = [sorted(values)[-(-percentile * len(values) // 100) - 1] for values in (before, after)]
        rows[percentile] = {"latency_before_us": ends[0], "latency_after_us": ends[1], "ratio": ends[1] / ends[0]}
    return rows


def fragmentation(reads: list[Row]) -> dict[int, Row]:
    """Extents -> the row of fct_fragmentation_effect of one configuration."""
    speeds: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in reads:
        if one["extents"] is not None:
            speeds[one["extents"]][one["file"]].append(one["speed"])
    of_files = {count: [mean(values) for values in files.values()] for count, files in speeds.items()}
    rows: dict[int, Row] = {}
    for count, values in of_files.items():
        base_count = min(of_files)
        base = mean(of_files[base_count])
        low, high = ratio_interval(values, of_files[base_count])
        ends = (None, None) if low is None or high is None else (1 - high, 1 - low)
        rows[count] = {
            "files": len(values), "reads": sum(map(len, speeds[count].values())),
            "mean_throughput_bytes_per_s": mean(values), "drop_ratio": (base - mean(values)) / base,
            "sd_throughput_bytes_per_s": stdev(values) if len(values) > 1 else None,
            **compared("drop_ratio", ends, 0, "slower", "faster"),
        }  # fmt: skip
        if count == base_count:
            rows[count] |= {"low_drop_ratio": None, "high_drop_ratio": None, "verdict": None}
    return rows


Drop = tuple[int, float, float | None, float | None]
"""Number of values, cost of a slowdown, and the ends of its 95% interval."""


def drops(reads: list[Row]) -> dict[str, Drop]:
    """Slowdown -> what it costs one configuration."""
    found: dict[str, Drop] = {}
    by_extents = fragmentation(reads)
    if by_extents:
        most = by_extents[max(by_extents)]
        found["intrinsic"] = most["files"], most["drop_ratio"], most["low_drop_ratio"], most["high_drop_ratio"]
    by_phase: dict[str, list[Row]] = defaultdict(list)
    for one in reads:
        by_phase[one["phase"]].append(one)
    of_instances = [instance["mean_drop_ratio"] for members in by_phase.values() for instance in temporal(members)]
    low, high = None, None
    if len(of_instances) > 1:
        low, high = ttest_1samp(of_instances, 0).confidence_interval()
    found["temporal"] = len(of_instances), mean(of_instances) if of_instances else 0.0, low, high
    sides: tuple[list[Row], list[Row]] = ([], [])
    if by_phase["before"] and by_phase["after"]:
        sides = by_phase["before"], by_phase["after"]
    else:
        for file in {one["file"] for one in reads}:
            members = [one for one in reads if one["file"] == file]
            onset = permanent(members)["onset_hour"]
            for one in members if onset is not None else ():
                sides[one["middle"] >= onset * 3600].append(one)
    if all(sides):
        before, after = (median(one["speed"] for one in side) for side in sides)
        by_hour: tuple[dict[Key, list[float]], dict[Key, list[float]]] = (defaultdict(list), defaultdict(list))
        for side, hours in zip(sides, by_hour, strict=True):
            for one in side:
                hours[one["run"], one["middle"] // 3600].append(one["speed"])
        medians = [[median(speeds) for speeds in hours.values()] for hours in by_hour]
        found["permanent"] = min(map(len, medians)), 1 - after / before, *median_drop_interval(*medians)
    return found


def span(reads: list[Row]) -> float:
    """Seconds over which reads were made, all phases together."""
    phases: dict[str, list[Row]] = defaultdict(list)
    for one in reads:
        phases[one["phase"]].append(one)
    return sum(max(one["end"] for one in members) - min(one["start"] for one in members) for members in phases.values())


def mitigations(by_config: dict[str, list[Row]], default: str) -> dict[tuple[str, str], Row]:
    """(slowdown, configuration) -> its row of fct_mitigations."""
    costs = {config: drops(reads) for config, reads in by_config.items()}
    rows = {}
    for config, found in costs.items():
        phases = [[one for one in by_config[config] if one["phase"] == phase] for phase in {one["phase"] for one in by_config[config]}]
        is_too_few, is_too_noisy = max(map(len, phases)) < 20, min(map(least_drop, phases)) >= 1
        untested = {
            "intrinsic": len({one["extents"] for one in by_config[config] if one["extents"] is not None}) == 1
            or sum(one["extents"] == 1 for one in by_config[config]) < 30,
            "temporal": (is_too_few or is_too_noisy) and found["temporal"][0] == 0, "permanent": False,
        }  # fmt: skip
        for slowdown, (n, drop, low, high) in found.items():
            usual = costs[default].get(slowdown, (None, None))[1]
            verdict = "inconclusive"
            if low is not None and high is not None:
                is_outside = low > 0.02 or high < -0.02
                verdict = "masked" if max(abs(low), abs(high)) < 0.02 else "not masked" if is_outside else verdict
            elif slowdown == "temporal" and n == 0 and costs[default][slowdown][0]:
                rate = costs[default][slowdown][0] / span(by_config[default])
                verdict = "masked" if poisson.pmf(0, rate * span(by_config[config])) <= 0.05 else verdict
            rows[slowdown, config] = {
                "n": n, "drop_ratio": drop, "low_drop_ratio": low, "high_drop_ratio": high, "default_drop_ratio": usual,
                "is_masked": abs(drop) < 0.02 if usual is not None and usual > 0.05 and not untested[slowdown] else None,
                "verdict": "not tested" if untested[slowdown] else verdict if usual is not None and usual > 0.05 else None,
            }  # fmt: skip
    return rows


def percentiles(
    reads: list[Row], latencies: list[tuple[str, str, float, float]], traces: list[Any], extents: dict[Key, Row]
) -> dict[Key, Row]:
    """(measure, split, part, percentile) -> the row of fct_read_percentiles of one configuration.

    latencies: file, phase, time and microseconds of each request of a read.
    """
    values: dict[Key, list[float]] = defaultdict(list)
    onsets = {file: permanent([one for one in reads if one["file"] == file])["onset_hour"] for file in {one["file"] for one in reads}}
    instances = {phase: temporal([one for one in reads if one["phase"] == phase]) for phase in {one["phase"] for one in reads}}
    timed = [("throughput", one["file"], one["phase"], one["middle"], one["speed"]) for one in reads]
    for measure, file, phase, at, value in timed + [("latency", *one) for one in latencies]:
        values[measure, "all", "all"].append(value)
        if onsets[file] is not None:
            values[measure, "permanent", "after" if at >= onsets[file] * 3600 else "before"].append(value)
        elif phase in ("before", "after"):
            values[measure, "permanent", phase].append(value)
        if instances[phase]:
            is_inside = any(one["started_s"] <= at <= one["ended_s"] for one in instances[phase])
            values[measure, "temporal", "inside" if is_inside else "outside"].append(value)
    for key, done, _ in traces:
        places: dict[Key, int] = defaultdict(int)
        for one in done:
            if one["read_index"]:
                name = (*key, one["file_name"], one["read_index"], one["extent_index"])
                places[name] += 1
                part = "during" if places[name] <= extents[name]["recovery_requests"] else "after"
                values["latency", "recovery", part].append(one["latency_us"])
    for row in extents.values():
        values["recovery", "extent_bytes", str(2 ** (row["extent_bytes"].bit_length() - 1))].append(row["recovery_requests"])
    rows = {}
    for (measure, split, part), found in values.items():
        others = [members for (of, by, name), members in values.items() if (of, by) == (measure, split) and name != part]
        distance = ks_2samp(found, others[0]).statistic if len(others) == 1 else None
        for percentile in range(1, 100):
            value = sorted(found)[-(-percentile * len(found) // 100) - 1]
            rows[measure, split, part, percentile] = {"n": len(found), "value": value, "ks_distance": distance}
    return rows
