"""The page of the calibration: which half was held out, distances of curves, reasons."""

import duckdb
import pytest

from study.calibration import DISTANCES, HALVES, REASONS, Verdict, reason_of, row

NEAR = Verdict("F5B-disk-23", "disk", is_fitted=True, agrees=True, paper=90.5, value=90.0, low=89.0, high=91.0, factor=1.05)


def test_half_of_the_numbers_of_each_family_are_held_out() -> None:
    families = duckdb.sql(
        f"select count(*) as numbers, count(*) filter (is_fitted) as fitted from ({HALVES}) group by split_part(id, '-', 1), kind"
    ).fetchall()
    assert len(families) > 40
    assert all(fitted == (numbers + 1) // 2 for numbers, fitted in families)


@pytest.mark.parametrize(("stretched", "distance"), [(1, 0), (2, 0.2)])
def test_the_distance_of_a_curve_is_zero_to_itself_alone(stretched: float, distance: float) -> None:
    """Vertices at 1, 2 and 3 hours; once they are taken for 2, 4 and 6, the paper has 0.8 at 4, where the fleet has all."""
    with duckdb.connect() as connection:
        connection.execute("create schema marts; create schema study")
        own = "(values (1e0, 0.5e0, 0e0), (2e0, 0.8e0, 0.5e0), (3e0, 1e0, 0.8e0)) as steps (x, y, y_left)"
        connection.execute(
            f"create table marts.study_curves as select '5a' as figure, 'Disk' as curve, x, y, y_left, 10 as population from {own}"
        )
        connection.execute(
            "create table study.study_paper_curves as select figure, curve, x * ? as x, y from marts.study_curves"
            " union all select '12a', 'Base', 1e0, 0.5e0",
            [stretched],
        )
        ((figure, curve, found, population),) = connection.execute(DISTANCES).fetchall()
    assert (figure, curve, population) == ("5a", "Disk", 10)
    assert found == pytest.approx(distance)


def test_a_number_that_differs_has_its_factor_and_its_first_cause() -> None:
    assert reason_of(NEAR).startswith("within noise (the interval holds the paper's value), off by a factor of 1.05; PI-04")
    assert reason_of(NEAR._replace(low=90.6)).startswith("off by a factor of 1.05, paper outside the interval; PI-04")
    assert reason_of(NEAR._replace(paper=None, factor=None)).startswith("no value to compare with; PI-04")
    assert reason_of(NEAR._replace(kind="ssd")).endswith(next(why for ids, kind, why in REASONS if kind == "both" and "F5" in ids))
    assert reason_of(NEAR._replace(id="F2A")).endswith("; no cause is known")


def test_a_row_of_the_page_counts_what_agrees_by_kind() -> None:
    of_ssd = NEAR._replace(kind="ssd", agrees=False)
    assert row("seed 2", [NEAR, NEAR._replace(agrees=False), of_ssd]) == "| seed 2 | 1 of 2 (50%) | 0 of 1 (0%) | 1 of 3 (33%) |"
