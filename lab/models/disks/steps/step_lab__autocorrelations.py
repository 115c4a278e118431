"""Autocorrelation of the busy share of a device from second to second: statsmodels `acf`, not adjusted.

Grain: experiment_id, config_id, phase, run_number, file, device, lag_seconds. Lags from 1 to one more than half of the bins, so that each
lag up to half has a neighbour. A device that is busy alike in every second has no rows.
"""

KEY = ["experiment_id", "config_id", "phase", "run_number", "file", "device"]
TRACES = f"select distinct {', '.join(KEY)} from lab_busy order by all"
RATIOS = f"select busy_ratio from lab_busy where {' and '.join(f'{name} = ?' for name in KEY)} order by bin"
TABLE = f"{', '.join(f'{name} varchar' for name in KEY)}, bins bigint, lag_seconds bigint, correlation double".replace(
    "run_number varchar", "run_number bigint"
)


def model(dbt, session):
    """One series after the other."""
    import numpy as np

    session.execute(f"create or replace temp table lab_busy as {dbt.ref('fct_busy_seconds').sql_query()}")
    session.execute(f"create or replace temp table lab_correlations ({TABLE})")
    for trace in session.execute(TRACES).fetchall():
        ratios = session.execute(RATIOS, trace).fetchnumpy()["busy_ratio"]
        # the shortest series that has a lag of 2 within its half
        if len(ratios) < 4 or np.ptp(ratios) == 0:
            continue
        # only now: a warehouse without traces needs no statsmodels
        from statsmodels.tsa.stattools import acf

        found = acf(ratios, adjusted=False, nlags=len(ratios) // 2 + 1)[1:]
        session.register("lab_found", _table(found))
        session.execute(f"insert into lab_correlations select {', '.join('?' * len(KEY))}, ?, * from lab_found", [*trace, len(ratios)])
        session.unregister("lab_found")
    return session.table("lab_correlations")


def _table(correlations):
    """Columns lag_seconds and correlation."""
    import pyarrow as pa

    return pa.table(
        {"lag_seconds": pa.array(range(1, len(correlations) + 1), pa.int64()), "correlation": pa.array(correlations, pa.float64())}
    )
