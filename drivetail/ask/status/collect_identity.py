"""What the publication tells of drives that hosts see: who they are, which group they are in, where sources disagree."""

from __future__ import annotations

import duckdb

from drivetail.ask.status.content import listing
from engine.read import Row

ATTRIBUTES = (
    "raid_group_id", "role", "slot", "kind", "model", "firmware", "capacity_bytes", "rpm", "interface", "enclosure", "deployed_on",
)  # fmt: skip
"""Attributes that change a number or a place of the marts; of a guessed RAID group nobody is said to be sure."""


def collect_unnamed(connection: duckdb.DuckDBPyConnection) -> Row:
    """Drives known by their device only (`HOST/DEVICE`, `wwn:...`) in the last hour they were seen."""
    return listing(
        connection,
        """
        select drive_id, last_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc
        from intermediate.int_drives__host_spans
        where drive_id like '%/%' or drive_id like 'wwn:%'
        """,
        "last_hour_utc desc, drive_id",
    )


def collect_guessed(connection: duckdb.DuckDBPyConnection) -> Row:
    """Drives whose RAID group, in the last hour they were seen, is only the host they are in."""
    return listing(
        connection,
        """
        select drive_id, current_raid_group_id as raid_group_id, last_hour_utc
        from marts.dim_drives
        where is_group_guessed and last_hour_utc is not null
        """,
        "raid_group_id, drive_id",
    )


def collect_disagreements(connection: duckdb.DuckDBPyConnection) -> Row:
    """Attributes of which two sources last said different things; `believed` is what the marts show.

    Among them who a name means: a wwn is one drive's for ever, a device's name may have passed on unless both speak of the same hour.
    """
    said = " union all ".join(
        f"""
        select drive_id, source, '{name}' as attribute, arg_max(cast({name} as varchar), (valid_from, collected_at)) as said
        from live where {name} is not null {"and not is_group_guessed" if name == "raid_group_id" else ""}
        group by drive_id, source
        """
        for name in ATTRIBUTES
    )
    believed = " union all ".join(
        f"select drive_id, '{name}' as attribute, arg_max(cast({name} as varchar), from_hour_utc) as believed"
        " from intermediate.int_drives__host_periods group by drive_id"
        for name in ATTRIBUTES
    )
    return listing(
        connection,
        f"""
        with live as (
            select delivered.* replace (coalesce(aliases.drive_id, delivered.drive_id) as drive_id, coalesce(source, 'bundle') as source)
            from raw.drives as delivered
            left join intermediate.int_aliases__periods as aliases
                on delivered.is_alias is not null and delivered.drive_id = aliases.alias
                and aliases.to_hour_utc = timestamp '9999-12-31'
            where not exists (
                select 1 from raw.retired_drives as retired
                where retired.delivery_seq = delivered.delivery_seq
                    and retired.file_no = delivered.file_no and retired.row_no = delivered.row_no
            )
            and coalesce(aliases.drive_id, delivered.drive_id) in (select drive_id from intermediate.int_drives__host_periods)
        ),
        named as (
            select distinct alias, source, drive_id,
                case when alias not like 'wwn:%' then coalesce(date_trunc('hour', valid_from), timestamp '0001-01-01') end as hour_utc
            from intermediate.int_aliases__claims
        ),
        names as (
            select distinct mine.alias as drive_id, mine.source, mine.drive_id as said
            from named as mine
            inner join named as others
                on mine.alias = others.alias and mine.hour_utc is not distinct from others.hour_utc
                and mine.drive_id <> others.drive_id and mine.source <> others.source
        ),
        said as ({said} union all select drive_id, source, 'serial' as attribute, said from names),
        believed as (
            {believed} union all
            select alias as drive_id, 'serial' as attribute, arg_max(drive_id, from_hour_utc) as believed
            from intermediate.int_aliases__periods group by alias
        )
        select said.drive_id, said.attribute, any_value(believed.believed) as believed,
            string_agg(said.source || ': ' || said.said, '; ' order by said.source, said.said) as said
        from said
        inner join believed on said.drive_id = believed.drive_id and said.attribute = believed.attribute
        group by said.drive_id, said.attribute
        having count(distinct said.said) > 1
        """,
        "drive_id, attribute",
    )
