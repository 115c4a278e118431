"""The reference of the study: its intervals as they are published, its completeness, and that the comparison sees what differs."""

from __future__ import annotations

import duckdb
import pytest
from scipy.stats import t

from study.tests.compare import STUDY_RELATIONS, compare_study
from study.tests.reference import (
    Study,
    Z,
    curve_rows,
    effective_size,
    is_in_scope,
    newcombe,
    read_references,
    student_limit,
    study,
    wilson,
)
from tests.reference.test_reference import marts_of_seed, publish


@pytest.mark.parametrize(
    ("x", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718), (20, 20, 0.8389, 1.0)],
)
def test_wilson_as_published(x, n, low, high):
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    assert wilson(x / n, n) == pytest.approx((low, high), abs=5e-5)


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


def test_effective_size_at_the_edges():
    """N observations are worth so many, before Student's limit makes less of them."""

    def size(hits: int, total: int, clusters: list[tuple[int, int]]) -> float:
        return effective_size(hits, total, clusters) * (student_limit(len(clusters) - 1) / Z) ** 2

    assert size(0, 20, [(0, 4)] * 5) == size(20, 20, [(4, 4)] * 5) == pytest.approx(5)  # no event: the clusters
    assert size(100, 400, [(25, 100)] * 4) == pytest.approx(24)  # no variance, 100 events against 20 of 100 in one: 400 / (2000 / 120)
    # nothing but clusters
    assert size(100, 200, [(50, 50)] * 2 + [(0, 50)] * 2) == pytest.approx(200 / ((100 * 50 * 4 / 3 + 20 * 50) / 120))


@pytest.mark.parametrize("freedom", [3, 8, 19, 39])
def test_the_limit_of_student_is_that_of_tables(freedom):
    assert student_limit(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=0.011)


WITHOUT_NUMBER = (
    *("T2-01", "T2-02", "T2-03", "T3X-01", "VST-04", "F09-03", "F09-04", "F8A-ORDER", "F8B-ORDER"),
    *(f"FG1-0{number}" for number in range(1, 5)),
    *(f"REL-0{number}" for number in range(1, 4)),
    *(f"TXT-0{number}" for number in (13, *range(16, 38))),
)
"""Definitions, anecdotes and rankings: every other id of the paper has its measure."""


@pytest.fixture(scope="module")
def study_6(tmp_path_factory) -> Study:
    return study(marts_of_seed(6, tmp_path_factory.mktemp("fleet")), read_references())


def test_every_reference_has_a_row_per_kind_and_a_measure(study_6):
    results = study_6.results
    wanted = [
        (one.id, kind)
        for one in read_references()
        if is_in_scope(one.id)
        for kind in (("disk", "ssd") if one.subject == "both" else (one.subject,))
    ]
    assert [(one["id"], one["kind"]) for one in results] == wanted
    unmeasured = {one["id"] for one in results if one["numerator"] is one["denominator"] is one["value"] is None}
    assert unmeasured == set(WITHOUT_NUMBER)


SLOW_DISKS = "where id = 'F01-01' and kind = 'disk'"
CURVE = "from marts.study_curves where figure = '4a' and curve = 'Si'"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select 1", None),
        # a bound may come 5e-15 off where its terms cancel, a curve at an x that no drive has; figure 12 is nobody's here
        ("update marts.study_results set ci_low = 5e-15 where ci_low = 0", None),
        (f"insert into marts.study_curves select * replace (1e18 as x, 1 as y, 1 as y_left) {CURVE} and x = 1", None),
        ("insert into marts.study_results by name select 'F12A-1' as id, 'disk' as kind", None),
        (f"update marts.study_results set numerator = numerator + 1 {SLOW_DISKS}", "study_results [F01-01, disk] numerator: expected "),
        (f"update marts.study_results set ci_high = ci_high * (1 + 1e-8) {SLOW_DISKS}", "study_results [F01-01, disk] ci_high: expected "),
        (f"update marts.study_results set value = null {SLOW_DISKS}", "study_results [F01-01, disk] value: expected "),
        ("delete from marts.study_results where id = 'F01-02'", "study_results [F01-02, ssd]: 1 row(s) expected, got 0"),
        ("insert into marts.study_results by name select 'F99' as id, 'ssd' as kind", "study_results [F99, ssd]: 0 row(s) expected, got 1"),
        ("update marts.study_curves set y_left = 0.5 where x = 16", "study_curves [4a, Si, 16.0] y_left: expected 0.99"),
        ("update marts.study_curves set population = 99 where figure = '2a'", "study_curves [2a, Disk, 4.0] population: expected "),
        ("delete from marts.study_curves where figure = '6a' and curve = 'Disk'", "study_curves [6a, Disk]: not in the file"),
        (f"insert into marts.study_curves select * {CURVE} and x = 1", "study_curves [4a, Si, 1.0]: 1 row(s) expected, got 2"),
    ],
)  # fmt: skip
def test_compare_study(statement, expected, study_6, tmp_path):
    published = tmp_path / "warehouse.duckdb"
    publish({"study_results": study_6.results, "study_curves": curve_rows(study_6.curves)}, STUDY_RELATIONS, published)
    with duckdb.connect(str(published)) as connection:
        connection.execute(statement)
    differences = compare_study(study_6, published)
    if expected is None:
        assert differences == []
    else:
        assert any(one.startswith(expected) for one in differences), differences
