"""Foundations of the study's reference: published intervals, a measure for every id, and a comparison that sees a difference.

The worked examples are unit tests of the models.
"""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from .compare import STUDY_RELATIONS, compare_study
from .fleets import deliveries, random_fleet
from .reference import compute
from .study import (
    Study,
    curve_rows,
    effective_size,
    is_in_scope,
    newcombe,
    read_references,
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
    assert effective_size(3, 10, [(1, 1)] * 3 + [(0, 1)] * 7) == 9  # single observations: N - 1
    assert effective_size(4, 8, [(2, 4), (2, 4)]) == 8  # no variance between clusters: N
    assert effective_size(9, 19, [(1, 2)] * 9 + [(0, 1)]) == 19  # less than binomial variance: at most N
    assert effective_size(0, 8, [(0, 4), (0, 4)]) == effective_size(8, 8, [(4, 4), (4, 4)]) == 2  # G
    assert effective_size(3, 8, [(3, 8)]) == 1
    assert effective_size(50, 100, [(50, 50), (0, 50)]) == 1  # nothing but the clusters


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
    rows = {"study_results": found.results, "study_curves": curve_rows(found.curves)}
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema marts; create schema study; create schema report; create schema status")
        for relation, columns in STUDY_RELATIONS.items():
            schema = pa.schema([(name, ARROW[of_type]) for name, of_type in columns.items()])
            connection.register("said", pa.Table.from_pylist(rows[relation], schema))
            connection.execute(f"create table marts.{relation} as select * from said")


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
