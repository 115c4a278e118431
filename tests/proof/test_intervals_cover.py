"""The 95% intervals of shares over RAID groups, on fleets drawn from a simulated one whose true share is known."""

from __future__ import annotations

from typing import Any

import duckdb
import jinja2
import pytest

from engine.build import build
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from simulate import simulate

SIZES = (4, 9, 20, 40)
DRAWS = 600
LEAST_COVERAGE = 0.92
"""600 draws of an interval that covers 95% fall below with a probability of 0.1%."""

# a fleet of `size` RAID groups, drawn with replacement from those of the kind; every draw is a class of its own
DRAWN = """
create table drawn as
with numbered as (
    select distinct kind, raid_group_id, dense_rank() over (partition by kind order by raid_group_id) as place from hours
),
counts as (select kind, max(place) as group_count from numbered group by kind),
places as (
    select kind, size, draw, member, 1 + floor(random() * group_count) as place
    from counts, unnest($sizes) as sizes (size), range($draws) as draws (draw), range(40) as members (member)
    where member < size
)
select kind, size, draw, member, raid_group_id from places inner join numbered using (kind, place)
"""


def estimates(is_pooled: bool) -> str:
    """SQL of the models' intervals over a relation `clusters`."""
    text = "".join((PROJECT / "macros/statistics" / f"{each}.sql").read_text() for each in ("student_limit", "wilson", "share_estimates"))
    module: Any = jinja2.Template(text).module
    return f"with {module.share_estimates('clusters', is_pooled)}"


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """RAID-hours of sixty days and tails among them, by kind, RAID group and week, and fleets drawn from them."""
    folder = tmp_path_factory.mktemp("intervals")
    simulate(folder / "bundle", disk_groups=40, ssd_groups=40, days=60, seed=5, health="planted")
    warehouse = Warehouse(folder / "warehouse")
    ingest("bundle", [folder / "bundle"], warehouse.root)
    build(warehouse)
    connection = duckdb.connect()
    connection.execute(f"attach '{warehouse.published}' as published (read_only)")
    connection.execute("""
        create table hours as
        select kind, raid_group_id, date_trunc('week', hour_utc) as week, count(*) as total, count(*) filter (where is_tail_hour) as hits
        from published.marts.fct_raid_hours
        group by all
    """)
    connection.execute("detach published")
    connection.execute("select setseed(0.5)")
    connection.execute(DRAWN, {"sizes": list(SIZES), "draws": DRAWS})
    return connection


@pytest.mark.proof
@pytest.mark.parametrize("is_weekly", [True, False])
def test_at_least_92_percent_of_intervals_hold_the_true_share(is_weekly: bool, hours: duckdb.DuckDBPyConnection) -> None:
    x = "cast(epoch(week) as double)" if is_weekly else "cast(null as double)"
    hours.execute(f"""
        create or replace temp table clusters as
        select cast(size as text) as measure, cast(draw as text) as class, {x} as x, kind, member as cluster_id,
            cast(sum(hits) as bigint) as hits, cast(sum(total) as bigint) as total
        from drawn inner join hours using (kind, raid_group_id)
        group by all
    """)
    found = hours.execute(f"""
        with truth as (select kind, {x} as x, sum(hits) / sum(total) as true_share from hours group by all),
        estimates as ({estimates(is_weekly)})
        select measure, estimates.kind, avg(cast(true_share between share_low and share_high as int)) as covered, count(*) as shown_count
        from estimates inner join truth on estimates.kind = truth.kind and estimates.x is not distinct from truth.x
        where share_low is not null
        group by all
    """).fetchall()
    assert len(found) == 2 * len(SIZES)
    assert not [each for each in found if each[2] < LEAST_COVERAGE]


def test_more_tails_never_make_an_interval_lie_lower() -> None:
    """Weeks alike but for their tails: from none to all hours of a RAID group, and then of a second one."""
    connection = duckdb.connect()
    connection.execute("""
        create table clusters as
        select 'm' as measure, 'c' as class, cast(tails as double) as x, 'disk' as kind, cluster_id, cast(168 as bigint) as total,
            cast(greatest(least(tails - 168 * cluster_id, 168), 0) as bigint) as hits
        from range(337) as weeks (tails), range(9) as members (cluster_id)
    """)
    rows = connection.execute(f"select share_low, share_high from ({estimates(True)}) order by x").fetchall()
    assert len(rows) == 337
    assert rows == sorted(rows)
    assert [high for _, high in rows] == sorted(high for _, high in rows)
