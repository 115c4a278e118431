"""Turns of a replay: each takes requests of a client until a unit of bytes is reached, or none is left.

Grain: experiment_id, config_id, phase, run_number, file, device, direction, file_name, turn. A turn may exceed the unit by less than a
request, and the next one begins at 0, so that turns are found one after the other.
"""

KEY = ["experiment_id", "config_id", "phase", "run_number", "file", "device", "direction", "file_name"]
CLIENTS = f"select distinct {', '.join(KEY)} from lab_accesses order by all"
SECTORS = f"select sectors_so_far from lab_accesses where {' and '.join(f'{name} = ?' for name in KEY)} order by place"
TABLE = ", ".join(f"{name} {'bigint' if name == 'run_number' else 'varchar'}" for name in KEY) + ", turn bigint, first_place bigint"


def model(dbt, session):
    """One client after the other."""
    import pyarrow as pa

    unit_sectors = int(dbt.config.get("unit_bytes")) // 512
    session.execute(f"create or replace temp table lab_accesses as {dbt.ref('step_lab__file_accesses').sql_query()}")
    session.execute(f"create or replace temp table lab_turns ({TABLE})")
    for client in session.execute(CLIENTS).fetchall():
        firsts = turns(session.execute(SECTORS, client).fetchnumpy()["sectors_so_far"], unit_sectors)
        session.register(
            "lab_found", pa.table({"turn": pa.array(range(1, len(firsts) + 1), pa.int64()), "first": pa.array(firsts, pa.int64())})
        )
        session.execute(f"insert into lab_turns select {', '.join('?' * len(KEY))}, * from lab_found", client)
        session.unregister("lab_found")
    return session.table("lab_turns")


def turns(so_far, unit):
    """Place, from 1, of the first request of each turn; so_far: sectors up to each request."""
    import numpy as np

    so_far = np.asarray(so_far, dtype="int64")
    firsts, begun, done = [], 0, 0
    while begun < len(so_far):
        firsts.append(begun + 1)
        # the request that reaches the unit still belongs to the turn
        last = int(np.searchsorted(so_far, done + unit))
        begun, done = last + 1, int(so_far[min(last, len(so_far) - 1)])
    return firsts
