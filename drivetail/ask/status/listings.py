"""The listings of a status that are relations of the publication: what each selects, and how the text shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drivetail.terminal import Columns
from engine.read import Row
from ingest.reading.devices import HIDDEN_PATH, VIRTUAL_PARTITION, WHOLE_DRIVE
from report.words import counted_noun, duration, human

DRIVE: Columns = {"drive": "drive_id", "RAID group": "raid_group_id"}
HOURS: Columns = {"first hour": "first_hour_utc", "last hour": "last_hour_utc"}
BEHIND: Columns = {"last hour": "last_hour_utc", "behind": ("lag_hours", duration)}

SPAN = "(hours from {first_hour} on, the last {status_window_days} days of the fleet)"
NO_SHARED_SERIAL = "drive_id not in (select unnest(string_split(devices, ', ')) from status.fct_shared_serials where devices is not null)"
KERNEL_NAME = f"/({WHOLE_DRIVE}|{HIDDEN_PATH}|{VIRTUAL_PARTITION}|nvme[0-9]+)$"
"""End of the name of a drive by its device, as lsblk and smartctl know it too."""

SHOWN = 10


@dataclass(frozen=True)
class Listing:
    """A query and the order of its rows; for the text a title, the columns, a line above the rows and one below them.

    The title and the line above may name thresholds, the fleet's `last_hour` and the `first_hour` that was looked at; the line below its
    first row's columns. The line above is left out where no row is one of those it is about.
    """

    title: str
    query: str
    order: str
    columns: Columns
    above: str = ""
    below: str = ""
    about: Callable[[Row], bool] = lambda row: True


def in_short(names: str) -> str:
    """The first of some names, and how many more there are."""
    named = names.split(", ")
    return ", ".join(named[:SHOWN]) + (f" and {human(len(named) - SHOWN)} more" if len(named) > SHOWN else "")


LAGGING = Listing(
    "RAID groups more than {lagging_hours:g} h behind the fleet's last hour, {last_hour}",
    """
    select
        late.raid_group_id, coalesce(raid_groups.name, late.raid_group_id) as raid_group_name, late.drive_count, late.last_hour_utc,
        late.lag_hours, late.is_stopped
    from status.fct_raid_group_freshness as late
    left join marts.dim_raid_groups as raid_groups on late.raid_group_id = raid_groups.raid_group_id
    where late.is_lagging
    """,
    "is_stopped desc, last_hour_utc desc nulls last, raid_group_id",
    {"RAID group": "raid_group_id", "called": "raid_group_name", "drives": "drive_count", **BEHIND},
    above="(without a last hour: inventory names the group, but none of its rows ever arrived)",
    about=lambda row: row["last_hour_utc"] is None,
)

SILENT_HOSTS = Listing(
    "Hosts that stopped reporting, or some of their drives, while others go on",
    """
    select
        host, case when host is null then raid_group_id end as raid_group_id, min(silent_for_hours) as silent_for_hours,
        max(place_silent_drives) as silent_drives, max(place_drives) as host_drives, max(last_hour_utc) as last_hour_utc,
        list({'drive_id': drive_id, 'device': device, 'last_hour_utc': last_hour_utc} order by device, drive_id) as drives
    from status.fct_drive_freshness where is_silent and last_hour_utc is not null
    group by host, case when host is null then raid_group_id end
    """,
    "silent_drives = host_drives desc, silent_for_hours, host nulls last, raid_group_id",
    {},
)
"""Shown by `silence`; the text lists their drives."""


def silence(row: Row) -> str:
    """A row of SILENT_HOSTS in words: `host web2 has sent nothing for 5 h (all 8 drives)`."""
    where = f"host {row['host']}" if row["host"] else f"RAID group {row['raid_group_id']}"
    names = in_short(
        ", ".join(
            drive["drive_id"] if "/" in drive["drive_id"] else " ".join(filter(None, (drive["device"], drive["drive_id"])))
            for drive in row["drives"]
        )
    )
    silent, drives, lasts = row["silent_drives"], row["host_drives"], duration(row["silent_for_hours"])
    if silent == drives:
        return f"{where} has sent nothing for {lasts} ({counted_noun(drives, 'drive')}: {names})"
    return f"{silent} of {counted_noun(drives, 'drive')} of {where} {'has' if silent == 1 else 'have'} sent nothing for {lasts}: {names}"


LISTINGS = {
    "freshness": {
        "lagging_groups": LAGGING,
        "silent_drives": Listing(
            "Drives that sent nothing for {silent_hours:g} h while their RAID group, or other hosts, went on",
            """
            select
                drive_id, host, device, slot, raid_group_id, role, last_hour_utc, group_last_hour_utc, lag_hours, silent_for_hours,
                place_silent_drives, place_drives
            from status.fct_drive_freshness where is_silent
            """,
            "last_hour_utc desc nulls last, drive_id",
            {"host": "host", **DRIVE, "role": "role", "last hour": "last_hour_utc", "silent for": ("silent_for_hours", duration)},
            above="(without a last hour: it never reported)",
            about=lambda row: row["last_hour_utc"] is None,
        ),
        "drives_without_inventory": Listing(
            "Drives with rows but no inventory, which count as data drives",
            f"""
            select drive_id, raid_group_id, first_hour_utc, last_hour_utc
            from status.fct_drive_freshness where not has_inventory and last_hour_utc is not null and {NO_SHARED_SERIAL}
            """,
            "drive_id",
            {**DRIVE, **HOURS},
        ),
    },
    "inventory": {
        "contradictions": Listing(
            "Drives whose rows name another RAID group than inventory; the rows count",
            "from status.fct_inventory_contradictions",
            "last_hour_utc desc, hours desc, drive_id, raid_group_id, inventory_raid_group_id",
            {**DRIVE, "by inventory": "inventory_raid_group_id", "hours": "hours", **HOURS},
            above=SPAN,
        ),
        "unjudged_hosts": Listing(
            "Hosts with drives that are not judged, or of no known kind",
            "from status.fct_unjudged_hosts",
            "drive_count desc, host, reason",
            {"host": "host", "why": "reason", "drives": "drive_count", "which": ("drives", in_short)},
            above="(behind a RAID controller the kernel sees the logical drive: no source here can show the drives behind it)",
            about=lambda row: row["reason"] == "behind a RAID controller",
        ),
        "hosts_of_two_names": Listing(
            "Hosts that sources call otherwise, short and with the domain, or in other letters",
            """
            with hosts as (
                select distinct coalesce(host, split_part(drive_id, '/', 1)) as host
                from marts.dim_drives where host is not null or drive_id like '%/%'
            )
            select distinct one.host, other.host as other_host
            from hosts as one
            inner join (select *, unnest([lower(host), lower(split_part(host, '.', 1))]) as name from hosts) as other
                on lower(one.host) = other.name and (one.host < other.host or lower(one.host) <> lower(other.host))
            """,
            "host, other_host",
            {"host": "host", "and host": "other_host"},
            above="(records of one drive do not meet: give all sources one name for the host, as the folder's name or by --host-label)",
        ),
        "unnamed_drives": Listing(
            "Drives known by their device only",
            f"""
            select drive_id, current_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc from marts.dim_drives
            where last_hour_utc is not null and (regexp_matches(drive_id, '{KERNEL_NAME}') or drive_id like 'wwn:%') and {NO_SHARED_SERIAL}
            """,
            "last_hour_utc desc, drive_id",
            {**DRIVE, **HOURS},
            above="(ingest lsblk or smartctl of the host, or say it with `drivetail map`)",
        ),
        "unnamed_vdevs": Listing(
            "Drives known only by a name that is not the kernel's, such as ZFS's",
            f"""
            select drive_id, current_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc from marts.dim_drives
            where last_hour_utc is not null and drive_id like '%/%' and not regexp_matches(drive_id, '{KERNEL_NAME}') and {NO_SHARED_SERIAL}
            """,
            "last_hour_utc desc, drive_id",
            {**DRIVE, **HOURS},
            above="(lsblk and smartctl of the host do not know these names: say with `drivetail map` which drives they are, or call\n"
            "`zpool iostat` and `zpool status` with -L, which prints the kernel's, and ingest lsblk)",
        ),
        "guessed_groups": Listing(
            "Drives whose RAID group is only their host",
            """
            select drive_id, current_raid_group_id as raid_group_id, last_hour_utc
            from marts.dim_drives where is_group_guessed and last_hour_utc is not null
            """,
            "raid_group_id, drive_id",
            {**DRIVE, "last hour": "last_hour_utc"},
            above="(run deploy/membership.sh on the host: POSIX shell, no Python; or say it with `drivetail map`)",
        ),
        "unknown_kinds": Listing(
            "Drives of unknown kind, compared with each other, or with an array of one known kind",
            "select drive_id, current_raid_group_id as raid_group_id, first_hour_utc, last_hour_utc from marts.dim_drives "
            "where peer_kind = 'unknown' and last_hour_utc is not null",
            "raid_group_id, drive_id",
            {**DRIVE, "last hour": "last_hour_utc"},
            above="(give --kind, or say it with `drivetail map`; of a name of the kernel lsblk and smartctl of the host say it, too)",
        ),
        "mixed_groups": Listing(
            "RAID groups of several kinds of drives, each kind compared among itself",
            "from status.fct_mixed_raid_groups",
            "named_raid_group_id, raid_group_id",
            {"named": "named_raid_group_id", "compared as": "raid_group_id", "kind": "peer_kind", "drives": "drive_count"},
            above="(fewer than {fewest_drives:g} drives are compared with nothing)",
        ),
        "shared_serials": Listing(
            "Serials that several devices share, so that they name none",
            r"""
            select *, regexp_replace(coalesce(split_part(devices, ', ', 1), 'HOST/DEVICE'), '/([^/]*)$', ',\1') as example
            from status.fct_shared_serials
            """,
            "device_count desc, serial",
            {"serial": "serial", "devices": "devices", "why": "reason"},
            below="(each goes by HOST/DEVICE; to name one, give `drivetail map` a CSV file with a row for it, such as)\n"
            "host,device,drive_id\n{example},ITS-OWN-SERIAL",
        ),
        "disagreements": Listing(
            "Sources disagree",
            "from status.fct_inventory_disagreements",
            "drive_id, attribute",
            {"drive": "drive_id", "attribute": "attribute", "believed": "believed", "said": "said"},
        ),
    },
    "window": {
        "groups_with_gaps": Listing(
            "RAID groups with hours missing or without a valid median",
            "select * from status.fct_recent_raid_groups where missing_hours > 0 or hours_without_median > 0",
            "missing_hours desc, hours_without_median desc, raid_group_id",
            {"RAID group": "raid_group_id", "hours": "hours", "missing": "missing_hours", "no median": "hours_without_median", **HOURS},
            above=SPAN,
        ),
        "drives_with_gaps": Listing(
            "Drives without a row in hours that their RAID group has",
            """
            select drive_id, raid_group_id, first_hour_utc, last_hour_utc, hours, missing_hours
            from status.fct_recent_drives where missing_hours > 0
            """,
            "missing_hours desc, drive_id",
            {**DRIVE, "hours": "hours", "missing": "missing_hours", **HOURS},
            above=SPAN,
        ),
        "held": Listing(
            "Slow drives and RAID groups whose alerts are held back",
            """
            select held.* from status.fct_held_alerts as held
            cross join marts.publication as publication
            where held.ended_at > publication.last_hour_utc - interval 7 day
            """,
            "slow_hours desc, subject_type, subject_id, reason, begun_at",
            {
                "which": "subject_id",
                "host": "host",
                "device": "device",
                "RAID group": "raid_group_id",
                "by": "held_back_by",
                "slow hours": "slow_hours",
                "worst S": ("max_slowdown", lambda value: round(value, 2)),
                "first hour": "begun_at",
                "last hour": "ended_at",
            },
            above="(their array works, maintenance is planned, or none of their hours reaches the floor of concern: docs/alerts.md)",
        ),
        "paths": Listing(
            "Drives of several paths, added up",
            "from status.fct_recent_paths",
            "path_spans desc, drive_id",
            {"drive": "drive_id", "host": "host", "devices": "device", "hours added": "path_spans"},
        ),
    },
}
"""The listings of each part of a status, which `Status` describes, in the order of the text."""
