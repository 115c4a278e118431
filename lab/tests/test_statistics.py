"""The functions that models call in SQL, against SciPy, statsmodels and what the papers print."""

from __future__ import annotations

import math

import duckdb
import pytest
from scipy.stats import quantile_test
from scipy.stats import t as student
from statsmodels.stats.power import TTestIndPower

from lab.statistics import register


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    register(opened)
    return opened


@pytest.mark.parametrize(("t", "printed"), [(2.02, 0.048), (3.9, 0.00025), (0.75, 0.456)])
def test_p_values_of_the_seed_have_58_degrees_of_freedom(connection: duckdb.DuckDBPyConnection, t: float, printed: float) -> None:
    """Mingardi and Vieira write t(30), the size of a group; two groups of 30 have 58 degrees of freedom."""
    ((p,),) = connection.execute("select student_two_sided_p(?::double, 58::double)", [t]).fetchall()
    assert p == pytest.approx(printed, rel=0.02) and p == 2 * student.sf(t, 58)


def test_a_null_gives_null_and_columns_go_through_at_once(connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.execute(
        "select student_quantile(p, df) from (values (0.975::double, 4.5::double), (null, 4.5), (0.5, null)) as given (p, df)"
    ).fetchall()
    assert found == [(student.ppf(0.975, 4.5),), (None,), (None,)]


@pytest.mark.parametrize("n", [1, 6, 7, 20, 141])
def test_the_ranks_of_a_median_equal_the_interval_of_scipy(connection: duckdb.DuckDBPyConnection, n: int) -> None:
    ((rank,),) = connection.execute("select median_rank(?::double, 0.025::double)", [n]).fetchall()
    wanted = quantile_test([*range(1, n + 1)]).confidence_interval(0.975)
    assert (rank, n + 1 - rank) == (wanted.low, wanted.high) if rank else math.isnan(wanted.low)
    assert (rank > 0) == (n >= 7)


def test_the_detectable_effect_has_the_power_that_is_asked_for(connection: duckdb.DuckDBPyConnection) -> None:
    ((effect, none),) = connection.execute(
        "select detectable_effect(5.0::double, 0.05::double, 0.8::double), detectable_effect(1.0::double, 0.05::double, 0.8::double)"
    ).fetchall()
    assert TTestIndPower().power(effect, 5, 0.05) == pytest.approx(0.8, abs=1e-6) and math.isnan(none)


def test_the_runs_needed_find_a_difference_and_one_less_does_not(connection: duckdb.DuckDBPyConnection) -> None:
    ((runs, few, none, endless),) = connection.execute(
        "select runs_to_detect(0.7, 0.05, 0.8), runs_to_detect(50, 0.05, 0.8), runs_to_detect(0, 0.05, 0.8), "
        "runs_to_detect(1e-9, 0.05, 0.8)"
    ).fetchall()
    power = TTestIndPower().power
    assert power(0.7, runs, 0.05) >= 0.8 > power(0.7, runs - 1, 0.05)
    assert few == 2 and math.isnan(none) and math.isnan(endless)
