"""Turns of a replay: each takes requests of a client until a unit of bytes is reached, or none is left.

Grain: experiment_id, config_id, phase, run_number, file, device, direction, file_name, turn. A turn may exceed the unit by less than a
request, and the next one begins at 0, so that turns are found one after the other.
"""

TRACE = ["experiment_id", "config_id", "phase", "run_number", "file", "device", "direction"]
THIS = " and ".join(f"{name} = ?" for name in TRACE)
TABLE = ", ".join(f"{name} {'bigint' if name == 'run_number' else 'varchar'}" for name in TRACE)


def model(dbt, session):
    """One client after the other."""
    import numpy as np
    import pyarrow as pa

    unit_sectors = int(dbt.config.get("unit_bytes")) // 512
    session.execute(f"create or replace temp table lab_accesses as {dbt.ref('step_lab__file_accesses').sql_query()}")
    session.execute(f"create or replace temp table lab_turns ({TABLE}, file_name varchar, turn bigint, first_place bigint)")
    for trace in session.execute(f"select distinct {', '.join(TRACE)} from lab_accesses order by all").fetchall():
        clients = session.execute(
            f"select file_name, count(*) from lab_accesses where {THIS} group by file_name order by file_name", trace
        ).fetchall()
        sectors = session.execute(f"select sectors_so_far from lab_accesses where {THIS} order by file_name, place", trace).fetchnumpy()
        so_far = np.asarray(sectors["sectors_so_far"], dtype="int64")
        found = {"file_name": [], "turn": [], "first_place": []}
        begun = 0
        for file_name, requests in clients:
            firsts = turns(so_far[begun : begun + requests], unit_sectors)
            begun += requests
            found["file_name"] += [file_name] * len(firsts)
            found["turn"] += range(1, len(firsts) + 1)
            found["first_place"] += firsts
        session.register("lab_found", pa.table(found))
        session.execute(f"insert into lab_turns select {', '.join('?' * len(TRACE))}, * from lab_found", trace)
        session.unregister("lab_found")
    return session.table("lab_turns")


def turns(so_far, unit):
    """Place, from 1, of the first request of each turn; so_far: sectors up to each request."""
    import numpy as np

    firsts, begun, done = [], 0, 0
    while begun < len(so_far):
        firsts.append(begun + 1)
        # the request that reaches the unit still belongs to the turn
        last = min(int(np.searchsorted(so_far, done + unit)), len(so_far) - 1)
        begun, done = last + 1, int(so_far[last])
    return firsts
