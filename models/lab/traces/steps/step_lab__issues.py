"""What became of each request that a trace issued, by taking its events one after the other.

Grain: experiment_id, delivery_seq, listing, device, line. A row for each issue (D), and for each completion (C) that completes none.
"""

QUEUE, ISSUE, COMPLETION, REQUEUE = "Q", "D", "C", "R"
KEY = "experiment_id varchar, delivery_seq bigint, listing bigint, device varchar"
COLUMNS = {
    "line": "bigint", "outcome": "varchar", "direction": "varchar", "sector": "bigint", "sectors": "bigint", "queued_ns": "bigint",
    "issued_ns": "bigint", "completed_ns": "bigint", "error": "bigint",
}  # fmt: skip
EVENTS = """
    select line, time_ns, action, direction, sector, sectors, error from lab_events
    where experiment_id = ? and delivery_seq = ? and listing = ? and device = ? and direction is not null and sectors > 0
    order by time_ns, line
"""


def model(dbt, session):
    """Match the events of one device of one trace after the other."""
    import pyarrow as pa

    types = [(name, pa.string() if kind == "varchar" else pa.int64()) for name, kind in COLUMNS.items()]
    session.execute(f"create or replace temp table lab_events as {dbt.ref('step_lab__block_events').sql_query()}")
    session.execute(f"create or replace temp table lab_issues ({KEY}, {', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
    for trace in session.execute("select distinct experiment_id, delivery_seq, listing, device from lab_events order by all").fetchall():
        events = session.execute(EVENTS, trace).fetchnumpy()
        rows = matched(*(column.tolist() for column in events.values()))
        arrays = [pa.array([row[place] for row in rows], kind) for place, (_, kind) in enumerate(types)]
        session.register("lab_found", pa.table(arrays, schema=pa.schema(types)))
        session.execute(f"insert into lab_issues select ?, ?, ?, ?, {', '.join(COLUMNS)} from lab_found", trace)
        session.unregister("lab_found")
    return session.table("lab_issues")


def matched(lines, times, actions, directions, sectors, counts, errors):
    """Rows of COLUMNS of the events of one device, in order of time and line."""
    rows = []
    # (direction, first sector that is left) -> requests that are open there, in order of issue: [place in rows, sectors that are left]
    opened = {}
    queued = LatestRanges()
    for line, time, action, direction, sector, count, error in zip(lines, times, actions, directions, sectors, counts, errors, strict=True):
        if action == QUEUE:
            queued.put(direction, sector, count, time)
        elif action == ISSUE:
            opened.setdefault((direction, sector), []).append([len(rows), count])
            since = queued.at(direction, sector)
            rows.append([line, "open", direction, sector, count, time if since is None else since, time, None, 0])
        else:
            here = opened.get((direction, sector), [])
            alike = [one for one in here if one[1] == count]
            if action == REQUEUE:
                if alike:
                    here.remove(alike[-1])
                    rows[alike[-1][0]][1] = "requeued"
                continue
            larger = [one for one in here if one[1] > count] if not alike else []
            if not alike and not larger:
                rows.append([line, "unmatched_completion", direction, sector, count, None, None, time, error])
                continue
            one = (alike or larger)[0]
            here.remove(one)
            if error:
                rows[one[0]][8] = error
            if alike:
                rows[one[0]][1], rows[one[0]][7] = "completed", time
            else:
                rest = opened.setdefault((direction, sector + count), [])
                rest.append([one[0], one[1] - count])
                rest.sort()
        if not opened.get((direction, sector), True):
            del opened[direction, sector]
    return rows


class LatestRanges:
    """Ranges of sectors with a time: which is the latest that holds a sector?

    Ranges of a size between two powers of two lie in a grid of the greater one, so that each touches two cells at most. A range that a
    later one hides is dropped.
    """

    def __init__(self):
        self.cells = {}
        self.bits = {}

    def put(self, direction, sector, count, time):
        """Add a range; times do not fall."""
        bits, end = (count - 1).bit_length(), sector + count
        self.bits.setdefault(direction, set()).add(bits)
        for cell in {sector >> bits, (end - 1) >> bits}:
            low, high = cell << bits, (cell + 1) << bits
            held = self.cells.setdefault((direction, bits, cell), [])
            held[:] = [one for one in held if max(one[0], low) < sector or min(one[1], high) > end]
            held.append((sector, end, time))

    def at(self, direction, sector):
        """The time of the latest range that holds a sector, None without one."""
        latest = None
        for bits in self.bits.get(direction, ()):
            for low, high, time in reversed(self.cells.get((direction, bits, sector >> bits), ())):
                if low <= sector < high:
                    latest = time if latest is None else max(latest, time)
                    break
        return latest
