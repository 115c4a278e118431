"""Outcome of each request that a trace issued, by taking its events one after the other.

Grain: experiment_id, delivery_seq, listing, device, line. A row for each issue (D), and for each completion (C) that completes none.
"""

QUEUE, ISSUE, COMPLETION, REQUEUE = "Q", "D", "C", "R"
COMPLETED, REQUEUED, OPEN, UNMATCHED = "completed", "requeued", "open", "unmatched_completion"
KEY = {"experiment_id": "varchar", "delivery_seq": "bigint", "listing": "bigint", "device": "varchar", "direction": "varchar"}
COLUMNS = {
    "line": "bigint", "outcome": "varchar", "sector": "bigint", "sectors": "bigint", "queued_ns": "bigint", "issued_ns": "bigint",
    "completed_ns": "bigint", "error": "bigint",
}  # fmt: skip
EVENTS = f"""
    select line, time_ns, action, sector, sectors, error from lab_events
    where {" and ".join(f"{name} = ?" for name in KEY)} and sectors > 0
    order by time_ns, line
"""


def model(dbt, session):
    """Match the events of one direction of one device of one trace after the other: they have nothing to do with any others."""
    import numpy as np
    import pyarrow as pa

    columns = ", ".join(f"{name} {kind}" for name, kind in {**KEY, **COLUMNS}.items())
    session.execute(f"create or replace temp table lab_events as {dbt.ref('step_lab__block_events').sql_query()}")
    session.execute(f"create or replace temp table lab_issues ({columns})")
    names = ", ".join(KEY)
    for trace in session.execute(f"select distinct {names} from lab_events where direction is not null order by all").fetchall():
        line, time, action, sector, sectors, error = session.execute(EVENTS, trace).fetchnumpy().values()
        events, outcomes, queued, completed, errors = matched(*(column.tolist() for column in (time, action, sector, sectors, error)))
        is_issued = np.array([outcome != UNMATCHED for outcome in outcomes], dtype=bool)
        found = {
            "line": line[events], "outcome": pa.array(outcomes, pa.string()), "sector": sector[events], "sectors": sectors[events],
            "queued_ns": pa.array(queued, pa.int64()), "issued_ns": pa.array(time[events], mask=~is_issued),
            "completed_ns": pa.array(completed, pa.int64()), "error": pa.array(errors, pa.int64()),
        }  # fmt: skip
        session.register("lab_found", pa.table(found))
        session.execute(f"insert into lab_issues select {', '.join('?' for _ in KEY)}, {', '.join(COLUMNS)} from lab_found", trace)
        session.unregister("lab_found")
    return session.table("lab_issues")


def matched(times, actions, sectors, counts, errors):
    """Events of one device and direction, in order of time and line -> a row for each issue, and each completion of none, as lists:

    place of the event, outcome, time queued (None of a completion of none), time completed (None unless completed), error.
    """
    events, outcomes, queued, completed, found = [], [], [], [], []
    # first sector that is left -> requests that are open there, in order of issue: [place in the lists, sectors that are left]
    opened = {}
    ranges = LatestRanges()
    for event, (time, action, sector, count, error) in enumerate(zip(times, actions, sectors, counts, errors, strict=True)):
        if action == QUEUE:
            ranges.put(sector, count, time)
            continue
        here = opened.get(sector)
        if action == ISSUE:
            one = [len(events), count]
            if here is None:
                opened[sector] = [one]
            else:
                here.append(one)
            since = ranges.at(sector)
            events.append(event)
            outcomes.append(OPEN)
            queued.append(time if since is None else since)
            completed.append(None)
            found.append(0)
            continue
        alike = [one for one in here if one[1] == count] if here else ()
        if action == REQUEUE:
            if not alike:
                continue
            one = alike[-1]
            outcomes[one[0]] = REQUEUED
        elif alike:
            one = alike[0]
            outcomes[one[0]], completed[one[0]] = COMPLETED, time
        else:
            one = next((one for one in here or () if one[1] > count), None)
            if one is None:
                events.append(event)
                outcomes.append(UNMATCHED)
                queued.append(None)
                completed.append(time)
                found.append(error)
                continue
            rest = opened.setdefault(sector + count, [])
            rest.append([one[0], one[1] - count])
            rest.sort()
        if action == COMPLETION and error:
            found[one[0]] = error
        here.remove(one)
        if not here:
            del opened[sector]
    return events, outcomes, queued, completed, found


class LatestRanges:
    """Ranges of sectors with a time: which is the latest that holds a sector?

    Ranges of a size between two powers of two lie in a grid of the greater one, so that each touches two cells at most. A range that a
    later one hides is dropped.
    """

    def __init__(self):
        self.grids = {}

    def put(self, sector, count, time):
        """Add a range; times do not fall."""
        bits, end = (count - 1).bit_length(), sector + count
        grid = self.grids.setdefault(bits, {})
        first, last = sector >> bits, (end - 1) >> bits
        for cell in (first,) if first == last else (first, last):
            held = grid.get(cell)
            if held is None:
                grid[cell] = [(sector, end, time)]
            else:
                low, high = cell << bits, (cell + 1) << bits
                held[:] = [one for one in held if max(one[0], low) < sector or min(one[1], high) > end]
                held.append((sector, end, time))

    def at(self, sector):
        """The time of the latest range that holds a sector, None without one."""
        latest = None
        for bits, grid in self.grids.items():
            for low, high, time in reversed(grid.get(sector >> bits, ())):
                if low <= sector < high:
                    latest = time if latest is None or time > latest else latest
                    break
        return latest
