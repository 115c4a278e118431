"""Foundations of the study's reference: published intervals, a measure for every id, and a comparison that sees a difference.

The worked examples are unit tests of the models.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import variance

import duckdb
import pyarrow as pa
import pytest

from .compare import STUDY_RELATIONS, compare_study
from .fleets import deliveries, random_fleet
from .reference import compute
from .study import (
    Estimate,
    Study,
    curve_rows,
    difference,
    effective_size,
    is_in_scope,
    kaplan_meier,
    newcombe,
    percentile,
    read_references,
    share,
    study,
    wilson,
)

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
# All ids, on random fleets


def study_of_seed(seed: int, folder: Path) -> Study:
    folders, _ = deliveries(random_fleet(seed), "at_once", folder, random.Random(seed))
    return study(compute(folders), read_references())


WITHOUT_NUMBER = (
    *("T2-01", "T2-02", "T2-03", "T3X-01", "VST-04", "F09-03", "F09-04", "F8A-ORDER", "F8B-ORDER"),
    *(f"FG1-0{number}" for number in range(1, 5)),
    *(f"REL-0{number}" for number in range(1, 4)),
    *(f"TXT-0{number}" for number in (13, *range(16, 38))),
)
"""Definitions, anecdotes and rankings: every other id of the paper has its measure."""


def test_every_reference_has_a_row_per_kind_and_a_measure(tmp_path):
    results = study_of_seed(1, tmp_path).results
    wanted = [
        (one.id, kind)
        for one in read_references()
        if is_in_scope(one.id)
        for kind in (("disk", "ssd") if one.subject == "both" else (one.subject,))
    ]
    assert [(one["id"], one["kind"]) for one in results] == wanted
    unmeasured = {one["id"] for one in results if one["numerator"] is one["denominator"] is one["value"] is None}
    assert unmeasured == set(WITHOUT_NUMBER)


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
        (f"update marts.study_results set value = null {SLOW_DISKS}", "study_results [F01-01, disk] value: expected "),
        ("delete from marts.study_results where id = 'F01-02'", "study_results [F01-02, ssd]: 1 row(s) expected, got 0"),
        ("insert into marts.study_results by name select 'F99' as id, 'ssd' as kind", "study_results [F99, ssd]: 0 row(s) expected, got 1"),
        ("update study.study_variants set value = -1 where variant = 'lift'", "study_variants [lift, F08-02, disk] value: expected "),
        ("update marts.study_curves set y_left = 0.5 where x = 29.25", "study_curves [4a, Si, 29.25] y_left: expected 0.99"),
        ("update marts.study_curves set population = 99 where figure = '2a'", "study_curves [2a, Disk, 3.0] population: expected "),
        ("delete from marts.study_curves where figure = '6a' and curve = 'Disk'", "study_curves [6a, Disk]: not in the file"),
        (f"insert into marts.study_curves select * {CURVE} and x = 1", "study_curves [4a, Si, 1.0]: 1 row(s) expected, got 2"),
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
def study_5(tmp_path_factory) -> Study:
    return study_of_seed(5, tmp_path_factory.mktemp("fleet"))
