"""Statistics that SQL cannot compute: distributions, as functions that the models of the lab call. SciPy and statsmodels compute them, once
they are asked.

Whatever runs the models of the lab registers them on its connection. To add one, write a function of NumPy arrays and its line in
FUNCTIONS.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np
import pyarrow as pa

from ingest.contract.extras import how_to_install

Array = Any
LEAST_EFFECT = 0.01
"""In standard deviations: a smaller one needs more than a hundred thousand runs."""
MOST_EFFECT = 10
"""Two values each find it at any usual level and power."""


def student_two_sided_p(t: Array, freedom: Array) -> Array:
    """Probability that a variable of Student's t distribution is at least |t| from 0."""
    from scipy.stats import t as student

    return 2 * student.sf(np.abs(t), freedom)


def student_quantile(probability: Array, freedom: Array) -> Array:
    """The value that a variable of Student's t distribution stays below with a probability."""
    from scipy.stats import t as student

    return student.ppf(probability, freedom)


def median_rank(n: Array, level: Array) -> Array:
    """Rank, from 1, of the value of n that begins the interval of their median at a level; the same rank from above ends it.

    0 where n is too small: no list of SQL has such an element.
    """
    from scipy.stats import binom

    return binom.ppf(level / 2, n, 0.5)


def detectable_effect(n: Array, p: Array, power: Array) -> Array:
    """The smallest difference of two means, in standard deviations, that a t-test of n and n values finds with a power at a level p."""
    from statsmodels.stats.power import TTestIndPower

    def effect(n: float, p: float, power: float) -> float:
        return float(TTestIndPower().solve_power(nobs1=n, alpha=p, power=power)) if n >= 2 else np.nan

    return _each(effect, n, p, power)


def runs_to_detect(effect: Array, p: Array, power: Array) -> Array:
    """How many values each of two samples needs, at least 2, so that a t-test finds a difference (in standard deviations) with a power."""
    return _each(_runs, effect, p, power)


def _each(function: Callable[..., float], *columns: Array) -> Array:
    """Values of a slow function, which is called once for equal arguments."""
    known = cache(function)
    return np.array([known(*given) for given in zip(*columns, strict=True)], dtype=float)


def _runs(effect: float, p: float, power: float) -> float:
    from statsmodels.stats.power import TTestIndPower

    test = TTestIndPower()
    if not effect > 0:
        return np.nan
    # statsmodels finds no root for very large or very small effects
    if effect > MOST_EFFECT or test.power(effect, 2, p) >= power:
        return 2.0
    return float(np.ceil(test.solve_power(effect_size=effect, alpha=p, power=power))) if effect > LEAST_EFFECT else np.nan


FUNCTIONS: tuple[Callable[..., Array], ...] = (student_two_sided_p, student_quantile, median_rank, detectable_effect, runs_to_detect)
"""Functions that SQL may call by name. Null where an argument is, NaN where there is no such number."""


def register(connection: Any) -> None:
    """Let the SQL of a DuckDB connection call them."""
    for function in FUNCTIONS:
        count = len(inspect.signature(function).parameters)
        connection.create_function(function.__name__, _over_arrow(function), ["DOUBLE"] * count, "DOUBLE", type="arrow")


def _over_arrow(function: Callable[..., Array]) -> Callable[..., pa.Array]:
    @wraps(function)  # DuckDB looks at how many arguments there are
    def called(*columns: pa.ChunkedArray) -> pa.Array:
        try:
            values = function(*(column.to_numpy().astype(float) for column in columns))
        except ImportError as error:
            raise RuntimeError(f"the statistics of the lab need SciPy and statsmodels; {how_to_install('lab')}") from error
        return pa.array(np.asarray(values, dtype=float))

    return called
