"""The reference of the study against worked examples of metrics.md section 14, published intervals and sums done by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from statistics import variance
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from .compare_study import STUDY_RELATIONS, compare_study
from .fleets import deliveries, random_fleet, write_bundle
from .reference import Delivery, compute, timezones
from .study import (
    NUMBERS,
    Estimate,
    Populations,
    Reference,
    Study,
    curve_rows,
    difference,
    effective_size,
    estimate,
    is_in_scope,
    kaplan_meier,
    kolmogorov_smirnov,
    newcombe,
    percentile,
    read_references,
    references_file,
    share,
    study,
    time_of_day,
    verdict,
    wilson,
)

Record = dict[str, Any]
DAY = datetime(2026, 3, 1)


def at(hour: float) -> datetime:
    return DAY + timedelta(hours=hour)


def row(drive: str, hour: int, latency: float | None, ios: int = 10, **more: Any) -> Record:
    """A drive-hour of group g with reads only; latency None = no I/O."""
    reads = 0 if latency is None else ios
    record = {"hour_utc": at(hour), "drive_id": drive, "raid_group_id": "g", "read_ios": reads, "write_ios": 0}
    return record | {"read_latency_us": latency, "write_latency_us": None} | more


def rows_of(drive: str, latencies: Iterable[float | None], **more: Any) -> list[Record]:
    """One row per hour from hour 0; None = the hour is missing."""
    return [row(drive, hour, latency, **more) for hour, latency in enumerate(latencies) if latency is not None]


def peers(hours: int, names: str = "abc") -> list[Record]:
    """Three drives at latency 1, so that a fourth drive's latency is its slowdown."""
    return [record for name in names for record in rows_of(name, [1.0] * hours)]


def drive(name: str, kind: str = "disk", **more: Any) -> Record:
    return {"drive_id": name, "raid_group_id": "g", "role": "data", "kind": kind} | more


def reference(reference_id: str, subject: str = "disk", value: str = "1", unit: str = "percent", metric: str = "") -> Reference:
    return Reference(reference_id, "finding", subject, metric, "=", value, unit)


class Result:
    """A study, its numbers by id."""

    def __init__(self, populations: Populations, of: Study) -> None:
        self.populations, self.study = populations, of

    def estimate(self, reference_id: str, kind: str = "disk") -> Estimate:
        return estimate(self.populations, reference(reference_id), kind)

    def counts(self, *ids: str, kind: str = "disk") -> list[tuple[int | None, int | None]]:
        return [(found.numerator, found.denominator) for found in (self.estimate(name, kind) for name in ids)]

    def variant(self, name: str, reference_id: str, kind: str = "disk") -> Record:
        (found,) = (one for one in self.study.variants if (one["variant"], one["id"], one["kind"]) == (name, reference_id, kind))
        return found

    def variant_counts(self, name: str, reference_id: str, kind: str = "disk") -> tuple[int | None, int | None]:
        found = self.variant(name, reference_id, kind)
        return found["numerator"], found["denominator"]


@pytest.fixture
def study_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Result]:
    def build(hours: list[Record], drives: Sequence[Record], events: Sequence[Record] = ()) -> Result:
        marts = compute([Delivery(write_bundle((hours, list(drives), list(events)), tmp_path_factory.mktemp("bundle"), "parquet"))])
        return Result(Populations(marts), study(marts, []))

    return build


# --------------------------------------------------------------------------------------------------------------------
# Intervals of confidence


@pytest.mark.parametrize(
    ("x", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718), (20, 20, 0.8389, 1.0)],
)
def test_wilson_as_published(x, n, low, high):
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    assert wilson(x / n, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_bounds_are_where_the_score_test_rejects():
    for share_, n in ((0.3, 17.5), (0.002, 40.0), (0.999, 3.0)):
        for bound in wilson(share_, n):
            assert abs(share_ - bound) == pytest.approx(1.959963984540054 * math.sqrt(bound * (1 - bound) / n), rel=1e-9)


@pytest.mark.parametrize(
    ("one", "two", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_newcombe_as_published(one, two, low, high):
    """Newcombe 1998, Statistics in Medicine 17:873, table II, method 10."""
    found = newcombe(*((x / n, *wilson(x / n, n)) for x, n in (one, two)))
    assert found == pytest.approx((low, high), abs=5e-5)


def test_effective_size_by_hand():
    # p = 1/4, residuals +1 and -1: v = 2/1 * 2/64 = 1/16, p(1-p)/v = 3
    assert effective_size(2, 8, [(2, 4), (0, 4)]) == 3
    # p = 3/4, residuals +-0.75: v = 2 * 1.125 / 16, p(1-p)/v = 0.1875 / 0.140625
    assert float(effective_size(3, 4, [(3, 3), (0, 1)])) == pytest.approx(0.1875 / 0.140625)


def test_effective_size_of_equal_clusters_is_that_of_their_shares():
    rng = random.Random(7)
    hits = [rng.randint(0, 12) for _ in range(9)]
    x, n = sum(hits), 12 * 9
    by_shares = (x / n) * (1 - x / n) / (variance(hit / 12 for hit in hits) / 9)
    assert float(effective_size(x, n, [(hit, 12) for hit in hits])) == pytest.approx(by_shares)


def test_effective_size_at_the_edges():
    assert effective_size(3, 10, [(1, 1)] * 3 + [(0, 1)] * 7) == 9  # single observations: N - 1
    assert effective_size(4, 8, [(2, 4), (2, 4)]) == 8  # no variance between clusters: N
    assert effective_size(9, 19, [(1, 2)] * 9 + [(0, 1)]) == 19  # less than binomial variance: at most N
    assert effective_size(0, 8, [(0, 4), (0, 4)]) == effective_size(8, 8, [(4, 4), (4, 4)]) == 2  # G
    assert effective_size(3, 8, [(3, 8)]) == 1
    assert effective_size(50, 100, [(50, 50), (0, 50)]) == 1  # nothing but the clusters


def test_share_takes_the_clusters_into_account():
    items = [("g", 3)] * 2 + [("g", 1)] * 2 + [("h", 1)] * 4
    found = share(items, lambda value: value >= 2)
    assert (found.numerator, found.denominator, found.value) == (2, 8, 25.0)
    assert (found.ci_low / 100, found.ci_high / 100) == pytest.approx(wilson(0.25, 3))


def test_difference_of_shares():
    one = [(number, number < 56) for number in range(70)]
    two = [(number, number < 48) for number in range(80)]
    found = difference(one, two, bool)
    assert (found.numerator, found.denominator) == (56, 70)
    assert found.value == pytest.approx(20.0)
    # single observations: n_eff = N - 1
    of_one, of_two = (56 / 70, *wilson(56 / 70, 69)), (48 / 80, *wilson(48 / 80, 79))
    assert (found.ci_low / 100, found.ci_high / 100) == pytest.approx(newcombe(of_one, of_two))
    assert difference(one, [], bool) == Estimate(56, 70)


def test_7_percentile():
    values = [(number, float(number)) for number in range(1, 11)]
    assert [percentile(values, q).value for q in ("0.90", "0.95", "0.05")] == [9.0, 10.0, 1.0]
    assert share(values, lambda value: value < 9).value == 80.0


def test_woodruff_by_its_closed_form():
    """At q = 0.5 Wilson is 0.5 -+ (z/2) / sqrt(n + z^2); with single observations n = N - 1 = 99: ranks 41 and 60."""
    values = [(number, float(number)) for number in range(1, 101)]
    half = 1.959963984540054 / 2 / math.sqrt(99 + 1.959963984540054**2)
    assert (math.ceil(100 * (0.5 - half)), math.ceil(100 * (0.5 + half))) == (41, 60)
    found = percentile(values, "0.5")
    assert (found.numerator, found.denominator, found.value, found.ci_low, found.ci_high) == (None, 100, 50.0, 41.0, 60.0)


def test_woodruff_takes_the_design_effect_at_the_edge_below_the_estimate():
    """Values 1.015, 1.03 ... 2.5; up to 1.99 (rank 66) every other one of cluster g, the 34 above all of g (67 values; h has 33)."""
    ranked = [1 + rank * 0.015 for rank in range(1, 101)]
    found = percentile([("g" if rank % 2 == 1 or rank > 66 else "h", value) for rank, value in enumerate(ranked, 1)], "0.6")
    assert found.value == ranked[59]  # 1.9: the edge is 1.5
    # at or above 1.5: ranks 34 to 100, g 50 of 67, h 17 of 33: p = 0.67, residuals +-5.11: n_eff = 0.2211 / 0.01044484 = 21.2
    low, high = wilson(0.6, 0.67 * 0.33 / (2 * 2 * 5.11**2 / 100**2))
    assert (math.ceil(100 * low), math.ceil(100 * high)) == (40, 78)
    assert (found.ci_low, found.ci_high) == (ranked[39], ranked[77])


def test_kaplan_meier_as_published():
    """Remission times under 6-mercaptopurine (Freireich 1963), the textbook's table."""
    came = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    times = [(hours, True) for hours in came] + [(hours, False) for hours in censored]
    surviving = [1 - kaplan_meier(times, until) for until in (5, 6, 7, 10, 13, 16, 22, 23, 40)]
    assert surviving == pytest.approx([1.0, 0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448, 0.448], abs=5e-4)


def test_kaplan_meier_without_censoring_is_the_share():
    assert kaplan_meier([(0, True), (2, True), (30, True), (40, True)], 24) == pytest.approx(0.5)
    assert kaplan_meier([(-3, False)], 24) is None


# --------------------------------------------------------------------------------------------------------------------
# Verdicts


def of(value: float, low: float, high: float, denominator: int = 1_000_000, quantile: str | None = None) -> Estimate:
    return Estimate(None, denominator, value, low, high, quantile)


@pytest.mark.parametrize(
    ("text", "unit", "found", "expected"),
    [
        ("0.22", "percent", of(0.23, 0.225, 0.24), "agrees"),  # 0.22 is printed for up to 0.225
        ("0.22", "percent", of(0.23, 0.2251, 0.24), "differs"),
        ("0.22", "percent", of(0.27, 0.1, 0.4), "agrees"),
        ("0.22", "percent", of(0.28, 0.1, 0.4), "differs"),  # more than 1.25 times
        ("0.22", "percent", of(0.17, 0.1, 0.4), "differs"),
        ("40", "percent", of(42.0, 40.5, 45.0), "agrees"),
        ("40", "percent", of(42.0, 40.6, 45.0), "differs"),
        ("97.0", "percentile", of(96.3, 96.0, 97.1), "agrees"),  # 3.7 against 3.0
        ("97.0", "percentile", of(96.2, 96.0, 97.1), "differs"),  # 3.8
        ("97.0", "percent", of(92.0, 91.0, 97.1), "agrees"),  # a share is not measured from its other end
        ("0.22", "percent", of(0.22, 0.2, 0.3, denominator=4545), "no data"),  # 9.999 expected
        ("0.22", "percent", of(0.22, 0.2, 0.3, denominator=4546), "agrees"),
        ("90", "percent", of(90.0, 80, 95, denominator=99), "no data"),  # the rarer side
        ("90", "percent", of(90.0, 80, 95, denominator=100), "agrees"),
        ("99.78", "percentile", of(99.78, 99, 99.9, denominator=4545), "no data"),
        ("9", "ratio", of(9.0, 8.0, 10.0, denominator=99_999, quantile="0.9999"), "no data"),
        ("9", "ratio", of(9.0, 8.0, 10.0, denominator=100_000, quantile="0.9999"), "agrees"),
        ("9", "ratio", of(10.0, 9.5, 10.0, quantile="0.9999"), "agrees"),
        ("9", "ratio", of(10.0, 9.6, 10.0, quantile="0.9999"), "differs"),
        ("5", "percent", Estimate(0, 0), "no data"),
        ("hundreds", "events", of(200.0, 100, 300), "not comparable"),
        ("5", "percent", Estimate(3, None, 3.0, verdict="not comparable"), "not comparable"),
    ],
)
def test_verdict(text, unit, found, expected):
    assert verdict(reference("X", value=text, unit=unit), found) == expected


def test_the_disk_cell_that_the_paper_read_at_the_other_side_of_2():
    """PI-01: > compare disk with 98.46"""
    found = of(98.46, 98.45, 98.47)
    assert verdict(reference("T3B-07", value="98.5", unit="percentile"), found) == "agrees"
    assert verdict(reference("T3B-08", value="98.54", unit="percentile"), found) == "differs"


# --------------------------------------------------------------------------------------------------------------------
# Worked examples


def test_6_intervals(study_of):
    hours = rows_of("x", [3, 2, 5, None, 2, 1, 1, 1, 1, 4]) + peers(10)
    result = study_of(hours, [drive(name) for name in "abcx"])
    assert result.counts("F04-01", "F04-03", "INT-01", "F5A-disk-001", "F5A-disk-003") == [(1, 3), (0, 3), (1, 3), (2, 3), (3, 3)]
    assert result.counts("F05-01", "F5B-disk-00", "F5B-disk-01", "F5B-disk-04") == [(4, 4), (2, 4), (3, 4), (4, 4)]
    assert result.counts("F01-01", "F02-01", "F03-02") == [(5, 39), (5, 10), (0, 10)]
    assert result.counts("F06-01", "F6A-disk-4", "F6A-disk-8") == [(1, 4), (1, 4), (0, 4)]
    assert result.counts("F07-01", "F07-03", "F6B-disk-0004", "F6B-disk-0005") == [(0, 1), (0, 1), (0, 1), (1, 1)]
    axis = result.study.curves[("5a", "Disk")]
    assert (axis.population, axis.y(2), axis.y_left(4), axis.y(4)) == (3, 2 / 3, 2 / 3, 1.0)
    # lengths 3 (censored), 1, 1 (censored): of three at risk at 1 h one ends
    assert result.variant("Kaplan-Meier", "F04-01")["value"] == pytest.approx(200 / 3)
    # from end to start 2 and 5 h, from start to start 4 and 5 h
    assert result.variant_counts("interval end to start", "F05-01") == (2, 2)
    assert result.variant_counts("interval start to start", "F05-01") == (2, 2)
    assert result.counts("F04-01", "T1-01", kind="ssd") == [(0, 0), (0, None)]


def test_within_a_day_reaches_24_hours(study_of):
    latencies = [1.0] * 60
    for hour in (0, 1, 25, 50):  # gaps 0, 23, 24
        latencies[hour] = 3.0
    result = study_of(rows_of("x", latencies) + peers(60), [drive(name) for name in "abcx"])
    assert result.counts("F05-01", "F5B-disk-23", "F5B-disk-24") == [(2, 3), (2, 3), (3, 3)]
    # intervals 0-1, 25, 50: from end to start 24 and 25 h, from start to start 25 and 25 h
    assert result.variant_counts("interval end to start", "F05-01") == (1, 2)
    assert result.variant_counts("interval start to start", "F05-01") == (0, 2)


def test_9_rio(study_of):
    def hour(number: int, latency: float, ios: int) -> list[Record]:
        return [row("x", number, latency, ios)] + [row(name, number, 1.0, ios) for name in "abc"]

    # RIO 1200, 500 (tail: 2.4), then stable: 400 (tail to stable: no class of figure 10), 400 (1.0), 200 (2.0)
    hours = hour(0, 1.0, 300) + hour(1, 3.0, 125) + hour(2, 1.0, 100) + hour(3, 1.0, 100) + hour(4, 1.0, 50)
    result = study_of(hours, [drive(name) for name in "abcx"])
    assert result.counts("F10A-tail-2", "F10A-tail-3", "F10A-stable-2", "F10A-stable-3") == [(0, 1), (1, 1), (1, 2), (2, 2)]
    gap = result.estimate("F13-03")
    assert (gap.numerator, gap.denominator, gap.value) == (1, 1, 50.0)
    assert result.study.curves[("10a", "stable-to-tail")].y_left(2.4) == 0.0


def test_10_unplug(study_of):
    hours = rows_of("x", [1.0] * 10 + [3.0] + [1.0] * 2 + [None] * 2 + [1.0] * 5 + [2.0] + [1.0]) + peers(22)
    events = [
        {"drive_id": "x", "event_type": "unplug", "occurred_at": at(13 + 20 / 60), "raid_group_id": "g"},
        {"drive_id": "x", "event_type": "replug", "occurred_at": at(15 + 5 / 60), "raid_group_id": "g"},
    ]
    result = study_of(hours, [drive(name) for name in "abcx"], events)
    assert result.counts("F14-01", "F11A-2-4x-2", "F11A-2-4x-4", "F11A-4-8x-24") == [(1, 1), (0, 1), (1, 1), (0, 0)]
    assert result.counts("F15-01", "F15-03", "F11C-2-4x-4", "F11C-2-4x-8") == [(1, 1), (1, 1), (0, 1), (1, 1)]
    assert result.counts("UPD-01", "UPD-02") == [(1, 1), (1, 1)]
    assert (result.study.curves[("11a", "2-4x")].y(3), result.study.curves[("11c", "2-4x")].y_left(5)) == (1.0, 0.0)


def test_waits_are_the_least_of_a_drives_intervals_and_never_is_counted(study_of):
    # x: slow at 0 and at 40, unplugged at 45: waits 45 and 5; y and z: slow at 10, never unplugged, last rows at 20 and 12
    hours = rows_of("x", [3.0] + [1.0] * 39 + [3.0] + [1.0] * 4) + peers(60, "abcd")
    hours += rows_of("y", [1.0] * 10 + [9.0] + [1.0] * 10) + rows_of("z", [1.0] * 10 + [9.0] + [1.0] * 2)
    events = [{"drive_id": "x", "event_type": "unplug", "occurred_at": at(45), "raid_group_id": "g"}]
    result = study_of(hours, [drive(name) for name in "abcdxyz"], events)
    assert result.counts("F14-01", "F11A-2-4x-4", "F11A-2-4x-8", "F11A-8x+-1024") == [(1, 3), (0, 1), (1, 1), (0, 2)]
    # x came at 5 with y, watched for 10 hours, still at risk, and z, watched for 2, no more
    assert result.variant("Kaplan-Meier", "F14-01")["value"] == pytest.approx(50.0)
    assert result.counts("F15-01", "F15-03", "UPD-01") == [(0, 1), (0, 0), (0, 0)]


def test_episodes_are_those_of_the_population(study_of):
    hours = rows_of("x", [3.0, 1.0, 3.0, 1.0]) + peers(4)
    events = [
        {"drive_id": name, "event_type": of_type, "occurred_at": at(hour), "raid_group_id": "g"}
        for name in ("x", "s")
        for of_type, hour in (("unplug", 1.1), ("replug", 1.2), ("not_spinning", 2.0))
    ]
    result = study_of(hours, [drive(name) for name in "abcx"] + [drive("s", role="spare")], events)
    assert result.counts("F15-01", "UPD-01", "F15-03", "F09-02") == [(1, 1), (1, 1), (1, 1), (1, 1)]


def test_the_clusters_of_drives_are_their_groups(study_of):
    def group(name: str, slowest: float) -> list[Record]:
        return [row(f"{name}{number}", 0, latency) | {"raid_group_id": name} for number, latency in enumerate((1.0, 1.0, slowest))]

    hours = group("g", 1.0) + group("h", 3.0)
    result = study_of(hours, [drive(one["drive_id"]) | {"raid_group_id": one["raid_group_id"]} for one in hours])
    found = result.estimate("F06-01")
    # p = 1/6, residuals +-1/2: v = 2 * 0.5 / 36, n_eff = (5/36) * 36
    assert (found.ci_low / 100, found.ci_high / 100) == pytest.approx(wilson(1 / 6, 5))


def test_gaps_of_intervals_break_at_a_change_of_group(study_of):
    slow = [row("x", 0, 3.0), row("x", 3, 3.0) | {"raid_group_id": "h"}]
    others = [one | {"drive_id": f"{one['drive_id']}2", "raid_group_id": "h"} for one in peers(4)]
    drives = [drive(name) for name in "abc"] + [drive(f"{name}2", raid_group_id="h") for name in "abc"]
    drives += [drive("x", valid_to=at(2)), drive("x", raid_group_id="h", valid_from=at(2))]
    result = study_of(slow + peers(4) + others, drives)
    assert result.counts("F05-01", "F04-01") == [(1, 1), (0, 2)]
    assert result.variant_counts("interval end to start", "F05-01") == (0, 0)


def test_11_age(study_of):
    def aged(name: str, *instants: datetime) -> list[Record]:
        return [row(name, 0, 1.0) | {"hour_utc": instant} for instant in instants]

    first, later = datetime(2020, 12, 30), datetime(2021, 1, 2)
    deployed = {"a": date(2020, 1, 1), "b": date(2013, 6, 1), "c": date(2021, 1, 1), "d": None}
    hours = [record for name in deployed for record in aged(name, first, later)]
    result = study_of(hours, [drive(name, deployed_on=on) for name, on in deployed.items()])
    # a is in year 1, then 2; b in year 8; c of negative age at its first hour, in year 1 at the later one
    assert result.counts("F8A-Y01-2", "F8A-Y02-2", "F8A-Y08-3") == [(2, 2), (1, 1), (2, 2)]
    assert result.counts("F10-01", "F10-02", "F10-03", "F10-04", "F10-06") == [(0, 2), (1, 2), (0, 2), (1, 2), (0, 2)]
    assert result.estimate("F10-05").value == 1.0


def test_8_imbalance(study_of):
    # R 100, 100, 100, 250, 0: RI 2.5 on the slow drive d in hour 0; in hour 1 d is slow at RI 1, its blocks thrice the others'
    hour_0 = [row(name, 0, 1.0, 100) for name in "abc"] + [row("d", 0, 3.0, 250), row("e", 0, None)]
    hour_1 = [row(name, 1, 1.0, 100) for name in "abc"] + [row("d", 1, 3.0, 100)]
    blocks = [
        record | {"read_blocks": record["read_ios"] * (3 if record["drive_id"] == "d" and record["hour_utc"] == at(1) else 1)}
        for record in hour_0 + hour_1
    ]
    result = study_of([record | {"write_blocks": 0} for record in blocks], [drive(name) for name in "abcde"])
    assert result.counts("F08-02", "F08-03", "F08-06") == [(1, 2), (1, 2), (1, 2)]
    assert result.counts("F08-04", "F08-08", "F7B-disk-2", "F7D-disk-4") == [(1, 1), (1, 1), (0, 1), (1, 1)]
    assert result.counts("F08-01") == [(1, 2)]
    # 8 hours have a slowdown, of RI >= 2 and of ZI >= 2 one each
    assert result.variant_counts("unconditional", "F08-02") == (1, 8)
    assert result.variant("lift", "F08-02")["value"] == pytest.approx(4.0)
    assert result.variant("lift", "F08-06")["value"] == pytest.approx(4.0)


def test_4_exact_multiples(study_of):
    def group(name: str, latencies: Sequence[float]) -> list[Record]:
        return [row(f"{name}{number}", 0, latency) | {"raid_group_id": name} for number, latency in enumerate(latencies)]

    # 2 and 3 times 250; 1.5 times 500; 2 times 300 (no tick); 2.001 times 250
    fleet = {"g": (500, 250, 250, 750, 250), "h": (750, 500, 500), "i": (600, 300, 300), "j": (500.25, 250, 250)}
    # under half a nanosecond is no multiple of anything
    fleet["k"] = (0.0004, 0.0001, 0.0001)
    hours = [record for name, latencies in fleet.items() for record in group(name, latencies)]
    drives = [drive(record["drive_id"], "ssd") | {"raid_group_id": record["raid_group_id"]} for record in hours]
    result = study_of(hours, drives)
    assert result.counts("VST-01", "VST-02", "VST-03", "F4B-T1-2EQ", kind="ssd") == [(1, 5), (4, 17), (3, 4), (1, 5)]


def test_models_cells_and_vendors(study_of):
    attributes = {
        "a": {"model": "m", "flash_cell": "SLC", "vendor": "V"},
        "b": {"model": "m", "flash_cell": "MLC", "vendor": "W"},
        "c": {"model": "n", "flash_cell": "MLC", "vendor": "W"},
        "d": {"model": "n", "flash_cell": "MLC", "vendor": "U"},
        "e": {"flash_cell": "MLC", "vendor": "U"},  # no model: in none of these
    }
    hours = [row(name, 0, latency) for name, latency in zip(attributes, (1.0, 1.0, 1.0, 1.6, 1.0), strict=True)]
    result = study_of(hours, [drive(name, "ssd", **more) for name, more in attributes.items()])
    assert result.counts("F11-05", "F11-06", "F11-07", kind="ssd") == [(4, 5), (1, 4), (3, 4)]
    assert [result.estimate(name, "ssd").value for name in ("F11-08", "F11-09")] == [1.0, 2.0]
    assert result.counts("F11-01", "F11-02", "F12-01", "F12-02", "F12-03", kind="ssd") == [(2, 3), (1, 1), (2, 3), (1, 3), (0, 1)]
    assert result.counts("FG9-MLC-1.5", "FG9-MLCA-2", "FG9-MLCB-2", kind="ssd") == [(2, 3), (2, 2), (1, 1)]
    assert result.counts("F11-03", kind="ssd") == [(1, 1)]
    assert result.variant_counts("mixed models", "F01-02", "ssd") == (0, 5)


def test_table_1(study_of):
    hours = [record for name in "abcde" for record in rows_of(name, [1.0] * 25)]
    result = study_of(hours, [drive(name) for name in "abcde"])
    ids = ("T1-01", "T1-03", "T1-04", "T1-07", "T1-09", "T1-10", "T1-13", "T1-15", "T1-19", "T1-21", "DRV-01", "DRV-03", "TXT-003")
    assert [result.estimate(name).value for name in ids] == [1, 5, 5, 5, 2, 2, 125, 0, 25, 0, 5, 5, 25 / 24]
    assert result.counts("F2A-disk-04", "F2A-disk-05", "F2A-disk-GT8") == [(0, 1), (1, 1), (0, 1)]
    assert result.estimate("F2B-disk-P50").value == 25 / 24


def test_tables_3_read_their_cells_from_the_text(study_of):
    result = study_of(rows_of("x", [1.3]) + peers(1), [drive(name) for name in "abcx"])
    metric = "Table 3a: greatest slowdown T1 at the 99.9th percentile; population all disk RAID-hours"
    found = estimate(result.populations, reference("T3A-10", unit="ratio", metric=metric), "disk")
    assert (found.denominator, found.value, found.quantile) == (1, 1.3, "0.999")
    metric = "Table 3b: percentile reached at S_i = 1.2x; share of disk drive-hours below that ratio"
    found = estimate(result.populations, reference("T3B-01", unit="percentile", metric=metric), "disk")
    assert (found.numerator, found.denominator, found.value) == (3, 4, 75.0)


def test_events(study_of):
    hours = rows_of("x", [1.0, 3.0, 1.0, 1.0, 1.0, None]) + peers(6)
    types = ((0.5, "not_spinning"), (2.5, "not_responding"), (4.5, "scsi_timeout"), (5.5, "not_spinning"), (1.2, "other"))
    events = [{"drive_id": "x", "event_type": of_type, "occurred_at": at(hour), "raid_group_id": "g"} for hour, of_type in types]
    result = study_of(hours, [drive(name) for name in "abcx"], events)
    # of hours 0-1 slow, of 2-3 not; at 5 there is no slowdown
    assert result.counts("F09-02") == [(1, 2)]


@pytest.mark.parametrize(
    ("hour", "of_type", "found"),
    [(1.9, "media_error", 0), (2.0, "media_error", 1), (3.5, "scsi_timeout", 1), (4.9, "response_timeout", 1), (5.0, "media_error", 0)],
)  # fmt: skip
def test_explicit_events_within_an_hour_of_a_slow_hour(study_of, hour, of_type, found):
    events = [{"drive_id": "x", "event_type": of_type, "occurred_at": at(hour), "raid_group_id": "g"}]
    result = study_of(rows_of("x", [1.0, 1.0, 1.0, 3.0, 1.0, 1.0]) + peers(6), [drive(name) for name in "abcx"], events)
    assert result.counts("F09-01") == [(found, 1)]


def test_without_a_slow_hour_no_number_of_events_is_said(study_of):
    events = [{"drive_id": "x", "event_type": "media_error", "occurred_at": at(2.0), "raid_group_id": "g"}]
    result = study_of(rows_of("x", [1.0, 1.0, 1.0]) + peers(3), [drive(name) for name in "abcx"], events)
    assert result.estimate("F09-01").value is None


def test_variants_of_the_slowdown(study_of):
    # hour 0: reads 1, 1, 1, 4; writes equal: merged 3, 3, 3, 4.5 (1.5 times)
    split = {"write_ios": 10, "write_latency_us": 5.0}
    hour_0 = [row(name, 0, latency) | split for name, latency in zip("abcx", (1.0, 1.0, 1.0, 4.0), strict=True)]
    # hour 1: 1, 1, 1, 4: over their mean 1.75 that is 2.29; x has 5 I/Os, so that 10 at least leave 1, 1, 1
    hour_1 = [row(name, 1, 1.0, 50) for name in "abc"] + [row("x", 1, 4.0, 5)]
    # hour 2: only three of the four report: 2 is over the mean 4/3 only 1.5 times
    hour_2 = [row("a", 2, 1.0, 200), row("b", 2, 1.0, 200), row("x", 2, 2.0, 200)]
    # hour 3: the median is 0; hour 4: two drives make none
    hour_3 = [row(name, 3, 0.0, 100) for name in "abc"] + [row("x", 3, 1.0, 100)]
    hour_4 = [row("a", 4, 1.0, 100), row("x", 4, 3.0, 100)]
    more = {"a": {"model": "m"}, "b": {"model": "m"}, "c": {}, "x": {"model": "m"}}
    result = study_of(hour_0 + hour_1 + hour_2 + hour_3 + hour_4, [drive(name, **of_drive) for name, of_drive in more.items()])
    pairs = {
        name: [result.variant_counts(name, one) for one in ("F01-01", "F02-01")]
        for name in (
            *(f"threshold {edge}" for edge in ("1.2", "1.5", "2", "3", "4", "5")),
            *("read only", "write only", "mean instead of median", "minimum I/O 10", "minimum I/O 100", "complete groups"),
            *("width 3-4", "width 5-6", "mixed models"),
        )
    }
    assert pairs == {
        "threshold 1.2": [(3, 11), (3, 3)],
        "threshold 1.5": [(3, 11), (3, 3)],
        "threshold 2": [(2, 11), (2, 3)],
        "threshold 3": [(1, 11), (1, 3)],
        "threshold 4": [(1, 11), (1, 3)],
        "threshold 5": [(0, 11), (0, 3)],
        "read only": [(3, 11), (3, 3)],
        "write only": [(0, 4), (0, 1)],
        "mean instead of median": [(1, 11), (1, 3)],
        "minimum I/O 10": [(1, 10), (1, 3)],
        "minimum I/O 100": [(1, 3), (1, 1)],
        "complete groups": [(1, 8), (1, 2)],
        "width 3-4": [(2, 11), (2, 3)],
        "width 5-6": [(0, 0), (0, 0)],
        "mixed models": [(0, 0), (0, 0)],
    }
    assert result.variant_counts("width 3-4", "F03-02") == (0, 3)
    # at 1.5: merged in hour 0, over the mean in hour 2; nobody else is; of T2 and T3 the share below
    assert result.variant_counts("mean instead of median", "F02-05") == (2, 3)
    assert result.variant_counts("minimum I/O 10", "F02-05") == (2, 3)
    assert result.variant_counts("complete groups", "F02-05") == (2, 2)
    assert result.variant_counts("read only", "F03-03") == (0, 3)
    assert [result.variant_counts("read only", one) for one in ("F4A-T2-1.5", "F4A-T3-1.5")] == [(3, 3), (3, 3)]


def test_variants_with_several_tails(study_of):
    # x is slow by reads and writes, y by reads, z mildly by writes; two drives are idle at writes
    reads = dict(zip("abcdexyz", (1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 2.0, 1.0), strict=True))
    writes = dict(zip("cdexyz", (1.0, 1.0, 1.0, 2.0, 1.0, 1.5), strict=True))
    hours = [
        row(name, 0, latency) | ({"write_ios": 10, "write_latency_us": writes[name]} if name in writes else {})
        for name, latency in reads.items()
    ]
    result = study_of(hours, [drive(name) for name in reads])

    def tails(name: str) -> list[tuple[int, int]]:
        return [result.variant_counts(name, one) for one in ("F02-01", "F03-02", "F03-03", "F02-05", "F4A-T2-1.5", "F4A-T3-1.5")]

    assert tails("read only") == [(1, 1), (1, 1), (0, 1), (1, 1), (0, 1), (1, 1)]
    assert tails("write only") == [(1, 1), (0, 1), (0, 1), (1, 1), (0, 1), (1, 1)]


def test_time_of_day_is_flat_or_not(tmp_path):
    def populations(slow_of_hour: Callable[[int], int], timezone: str | None = None) -> Populations:
        """100 drive-hours in each hour of the day, a number of them slow."""
        rows = [
            {"drive_id": "x", "hour_utc": at(hour), "raid_group_id": "g", "kind": "disk", "latency_us": 1.0}
            | {"slowdown": 3.0 if number < slow_of_hour(hour) else 1.0, "is_slow": number < slow_of_hour(hour)}
            for hour in range(24)
            for number in range(100)
        ]
        marts = {"dim_drives": [], "dim_raid_groups": [], "fct_drive_hours": rows, "fct_drive_events": []}
        return Populations(marts, {"x": timezone})

    flat = time_of_day(populations(lambda hour: 20), "disk")
    assert (flat.numerator, flat.denominator, flat.value, flat.verdict) == (480, 2400, 0.0, "agrees")
    # 30 of 100 at night, 18 by day: overall 22 of 100
    nightly = time_of_day(populations(lambda hour: 30 if hour < 8 else 18), "disk")
    assert (nightly.value, nightly.verdict) == (pytest.approx(30 / 22 - 1), "differs")
    assert time_of_day(populations(lambda hour: 9), "disk").verdict == "no data"
    # half an hour off: 00:00 UTC is 05:30 there; every hour of day still has 100
    assert time_of_day(populations(lambda hour: 20, "Asia/Kolkata"), "disk").verdict == "agrees"


def test_timezones_come_from_the_latest_period(tmp_path):
    drives = [
        drive("a", timezone="Asia/Kolkata", valid_from=at(0), valid_to=at(1)),
        drive("a", timezone="UTC", valid_from=at(1)),
        drive("b"),
    ]
    bundle = write_bundle((peers(1), drives, []), tmp_path / "bundle", "ndjson")
    assert timezones([Delivery(bundle)]) == {"a": "UTC", "b": None, "c": None}


def test_kolmogorov_smirnov():
    assert kolmogorov_smirnov([1, 2, 3, 4], [3, 4, 5, 6]) == 0.5
    # on an edge and just below it, on both sides of it
    assert kolmogorov_smirnov([1.0, 1.0], [0.9999, 1.0]) == 0.5
    assert kolmogorov_smirnov([1.0, 1.0], [1.0, 1.0001]) == 0.5
    # within a bin nothing is seen
    assert kolmogorov_smirnov([1.51, 100.1], [1.52, 100.9]) == 0
    assert kolmogorov_smirnov([1, 2], [2, 1, 1, 2]) == 0.0


def test_no_correlation(study_of):
    def estimate_of(sata: int, sas: int) -> Estimate:
        """60 hours of five SATA and five SAS drives, one of each slow in a number of hours."""
        hours = [record for name in "abcdefgh" for record in rows_of(name, [1.0] * 60)]
        for name, slow in (("x", sata), ("y", sas)):
            hours += rows_of(name, [3.0] * slow + [1.0] * (60 - slow))
        drives = [drive(name, interface="SATA") for name in "abcdx"] + [drive(name, interface="SAS") for name in "efghy"]
        return study_of(hours, drives).estimate("MOD-01")

    alike, apart, rare = estimate_of(30, 30), estimate_of(30, 15), estimate_of(9, 9)
    assert (alike.denominator, alike.value, alike.verdict) == (600, 0.0, "agrees")
    assert (apart.value, apart.verdict) == (pytest.approx(15 / 300), "differs")
    assert (rare.value, rare.verdict) == (None, "no data")


# --------------------------------------------------------------------------------------------------------------------
# All ids, on random fleets


@pytest.fixture(scope="module")
def references() -> list[Reference]:
    path = references_file()
    if path is None:
        pytest.skip("the paper's numbers are neither in seeds/study_references.csv nor in ../shared/spec")
    return read_references(path)


def study_of_seed(seed: int, references: list[Reference], folder: Path) -> Study:
    folders, _ = deliveries(random_fleet(seed), "at_once", folder, random.Random(seed))
    return study(compute([Delivery(path) for path in folders]), references)


WITHOUT_NUMBER = (
    *("T2-01", "T2-02", "T2-03", "T3X-01", "VST-04", "F09-03", "F09-04", "F8A-ORDER", "F8B-ORDER"),
    *(f"FG1-0{number}" for number in range(1, 5)),
    *(f"REL-0{number}" for number in range(1, 4)),
    *(f"TXT-0{number}" for number in (13, *range(16, 38))),
)
"""Definitions, anecdotes and rankings: every other id of the paper has its measure."""


def test_every_reference_has_a_row_per_kind_and_a_measure(references, tmp_path):
    results = study_of_seed(1, references, tmp_path).results
    wanted = [
        (one.id, kind)
        for one in references
        if is_in_scope(one.id)
        for kind in (("disk", "ssd") if one.subject == "both" else (one.subject,))
    ]
    assert [(one["id"], one["kind"]) for one in results] == wanted
    unmeasured = {one["id"] for one in results if one["numerator"] is one["denominator"] is one["value"] is None}
    assert unmeasured == set(WITHOUT_NUMBER)


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5, 6])
def test_what_holds_on_any_fleet(seed, references, tmp_path):
    found = study_of_seed(seed, references, tmp_path)
    by_id = {(one["id"], one["kind"]): one for one in found.results}
    for one in found.results + found.variants:
        if one["numerator"] is not None and one["denominator"] is not None and one["ci_low"] is not None:
            assert 0 <= one["numerator"] <= one["denominator"]
        if one["ci_low"] is not None:
            assert one["ci_low"] - 1e-9 <= one["value"] <= one["ci_high"] + 1e-9, one
        if one["denominator"] == 0:
            assert one["value"] is one["ci_low"] is None
    for one, two in (("F01-01", "T1-17"), ("F02-01", "F03-01"), ("F04-01", "INT-01"), ("F06-03", "F6A-disk-16"), ("F08-03", "F7A-disk-2")):
        assert [by_id[(one, "disk")][column] for column in NUMBERS] == [by_id[(two, "disk")][column] for column in NUMBERS]
    for one, two in (("F01-01", "F01-03"), ("F04-01", "F5A-disk-001"), ("F02-05", "F02-03"), ("F08-02", "F08-03")):
        above, below = by_id[(one, "disk")], by_id[(two, "disk")]
        assert above["numerator"] + below["numerator"] == above["denominator"] == below["denominator"]
    for curve in found.curves.values():
        assert curve.population >= len(curve.values)
        if curve.values:
            assert (curve.y_left(curve.values[0]), curve.y(curve.values[-1])) == (0.0, len(curve.values) / curve.population)


# --------------------------------------------------------------------------------------------------------------------
# Comparison with a file


ARROW = {"varchar": pa.string(), "bigint": pa.int64(), "double": pa.float64()}


def publish(found: Study, path: Path) -> None:
    """A published file that says what the study says."""
    rows = {"study_results": found.results, "study_variants": found.variants, "study_curves": curve_rows(found.curves)}
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema marts; create schema study; create schema report; create schema status")
        for relation, columns in STUDY_RELATIONS.items():
            schema = pa.schema([(name, ARROW[of_type]) for name, of_type in columns.items()])
            connection.register("said", pa.Table.from_pylist(rows[relation], schema))
            connection.execute(f"create table {'study' if relation == 'study_variants' else 'marts'}.{relation} as select * from said")


SLOW_DISKS = "where id = 'F01-01' and kind = 'disk'"
CURVE = "from marts.study_curves where figure = '4a' and curve = 'Si'"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select 1", None),
        # a bound may come 5e-15 off where its terms cancel, a curve at an x that no drive has; figure 12 is nobody's here
        ("update marts.study_results set ci_low = 5e-15 where ci_low = 0", None),
        (f"insert into marts.study_curves select * replace (1e6 as x, 1 as y, 1 as y_left) {CURVE} and x = 1", None),
        ("insert into marts.study_results by name select 'F12A-1' as id, 'disk' as kind", None),
        (f"update marts.study_results set numerator = numerator + 1 {SLOW_DISKS}", "study_results [F01-01, disk] numerator: expected "),
        (f"update marts.study_results set ci_high = ci_high * (1 + 1e-8) {SLOW_DISKS}", "study_results [F01-01, disk] ci_high: expected "),
        (f"update marts.study_results set verdict = 'unheard of' {SLOW_DISKS}", "study_results [F01-01, disk] verdict: expected "),
        (f"update marts.study_results set value = null {SLOW_DISKS}", "study_results [F01-01, disk] value: expected "),
        ("delete from marts.study_results where id = 'F01-02'", "study_results [F01-02, ssd]: not in the file"),
        ("insert into marts.study_results by name select 'F99' as id, 'ssd' as kind", "study_results [F99, ssd]: not in the reference"),
        (f"insert into marts.study_results from marts.study_results {SLOW_DISKS}", "study_results [F01-01, disk]: 2 rows"),
        ("update study.study_variants set value = -1 where variant = 'lift'", "study_variants [lift, F08-02, disk] value: expected "),
        ("update marts.study_curves set y_left = 0.5 where x = 29.25", "study_curves [4a, Si, x=29.25] y_left: expected 0.99"),
        ("update marts.study_curves set population = 99 where figure = '2a'", "study_curves [2a, Disk, x=3.0] population: expected "),
        ("delete from marts.study_curves where figure = '6a' and curve = 'Disk'", "study_curves [6a, Disk]: not in the file"),
        (f"insert into marts.study_curves select * {CURVE} and x = 1", "study_curves [4a, Si, 1.0]: 2 rows"),
        ("update marts.study_curves set x = null where figure = '8a'", "study_curves: x is null in "),
        ("alter table marts.study_results drop column verdict", "study_results: columns missing: verdict"),
        ("alter table marts.study_results alter numerator type integer", "study_results.numerator: declared INTEGER"),
        ("drop table study.study_variants", "study_variants: cannot be read: "),
    ],
)  # fmt: skip
def test_compare_study(statement, expected, study_5, tmp_path):
    published = tmp_path / "warehouse.duckdb"
    publish(study_5, published)
    with duckdb.connect(str(published)) as connection:
        connection.execute(statement)
    differences = compare_study(study_5, published)
    if expected is None:
        assert differences == []
    else:
        assert any(one.startswith(expected) for one in differences), differences


@pytest.fixture(scope="module")
def study_5(references, tmp_path_factory) -> Study:
    return study_of_seed(5, references, tmp_path_factory.mktemp("fleet"))
