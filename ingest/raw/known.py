"""Facts of a drive from earlier pulls: only new ones are kept, so inventory grows with the fleet and not with the hours."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.fleet import CONTRACT, IDENTITY, KEY
from ingest.raw.judge import scan_stored, stored_files
from ingest.raw.store import source_of, table_files
from ingest.reading.devices import host_of

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

HOUR = timedelta(hours=1)


def unknown_rows(rows: pl.DataFrame, record_kind: str, landing: Landing) -> pl.DataFrame:
    """The records (contract columns, `is_alias`, `is_group_guessed`) of `drives` or `drive_aliases` that say what was not known.

    Left out is an open record (no `valid_to`) of a key that is not stored, where the last one before it, of what is stored and of these,
    says the same, is open, too, and no other record has its key. Also there must be a drive-hour of the drive in its own hour or
    the one before: then the drive was seen from the one to the other, and hours that come later belong elsewhere.
    `seen_as`: what the drive-hours of the place are named.
    """
    if not rows.height:
        return rows
    name, _ = KEY[record_kind]
    says = [each for each in (*CONTRACT[record_kind], *IDENTITY[record_kind]) if each in rows.columns and each not in (name, "valid_from")]
    stored = stored_rows(record_kind, landing, rows, [name, "valid_from", *says])
    before = pl.concat([stored, rows.select(stored.columns)]).group_by(name, "valid_from").agg(
        pl.struct(says).n_unique().alias("records"), pl.col(says).first()
    )  # fmt: skip
    new = rows.with_row_index("number").join(stored, on=[name, "valid_from"], how="anti", nulls_equal=True)
    # a join with all others of its drive takes memory by the square of the hours
    earlier, later = (frame.drop_nulls([name, "valid_from"]).sort("valid_from") for frame in (before, new))
    last = later.join_asof(
        earlier, on="valid_from", by=name, allow_exact_matches=False, coalesce=False, suffix="_stored", check_sortedness=False
    )
    same = last.filter(
        pl.col("valid_from_stored").is_not_null(),
        pl.col("valid_to").is_null(),
        pl.col("records") == 1,
        *(pl.col(column).eq_missing(pl.col(f"{column}_stored")) for column in says),
    )
    seen = _seen(same, landing)
    begun = [same.with_columns((pl.col("valid_from").dt.truncate("1h") - back).alias("hour_utc")) for back in (HOUR, timedelta())]
    known = pl.concat(begun).join(seen, left_on=["seen_as", "hour_utc"], right_on=["drive_id", "hour_utc"], how="semi")
    return rows.filter(~pl.int_range(pl.len()).is_in(_with_device(known, name)["number"].implode()))


def _with_device(known: pl.DataFrame, name: str) -> pl.DataFrame:
    """Known records of devices, and of world wide names where the device's is known, too: models ask who stated both at once."""
    return known.join(known.filter(pl.col(name) == pl.col("seen_as")), on=["seen_as", "valid_from"], how="semi")


def without_known_claims(aliases: pl.DataFrame, landing: Landing) -> pl.DataFrame:
    """Aliases less the claims to a serial of several devices (`is_together`) that have landed with an end, and none to another since."""
    paths = [path for path in table_files(landing.staged.folders, "drive_aliases") if source_of(path) == landing.source]
    claims = aliases.filter("is_together")
    if not claims.height or not paths:
        return aliases
    stored = pl.scan_parquet(paths, glob=False).filter(pl.col("alias").is_in(claims["alias"].implode()), pl.col("drive_id").is_not_null())
    last = stored.select("alias", "drive_id", "valid_from", "valid_to").collect().sort("valid_from").unique("alias", keep="last")
    known = claims.join(last.filter(pl.col("valid_to").is_not_null()), on=["alias", "drive_id"], suffix="_stored")
    known = _with_device(known.filter(pl.col("valid_from") > pl.col("valid_from_stored")), "alias")
    return aliases.join(known, on=["alias", "valid_from"], how="anti", maintain_order="left")


def hosts_apart(landing: Landing) -> dict[str, set[str]]:
    """The hosts of this source that have landed with a label's value or a port in their name, by their name without it."""
    paths = [path for path in table_files(landing.staged.folders, "drives") if source_of(path) == landing.source]
    found: dict[str, set[str]] = {}
    if paths:
        is_apart = pl.col("host").str.contains(r"@|:\d+$")
        for host in pl.scan_parquet(paths, glob=False).filter(is_apart).select("host").unique().collect()["host"]:
            found.setdefault(host.rpartition("@")[0] or host_of(host), set()).add(host)
    return found


def landed_serials(hosts: pl.Series, landing: Landing) -> pl.DataFrame:
    """Devices of this source's hosts that have landed with a serial number, also of hosts with an `@` behind that name: host (as landed),
    device, raid_group_id, serial.
    """
    paths = {kind: [path for path in table_files(landing.staged.folders, kind) if source_of(path) == landing.source] for kind in KEY}
    places, names = paths["drives"], paths["drive_aliases"]
    if not places or not names:
        return pl.DataFrame(schema=dict.fromkeys(("host", "device", "raid_group_id", "serial"), pl.String()))
    is_asked = pl.col("host").str.replace("@.*", "").is_in(hosts.unique().implode()) & ~pl.col("is_group_guessed")
    stated = pl.scan_parquet(names, glob=False).filter(pl.col("drive_id").is_not_null()).select("alias", serial="drive_id")
    found = pl.scan_parquet(places, glob=False).filter(is_asked).join(stated, left_on="drive_id", right_on="alias")
    device = pl.col("drive_id").str.replace("^[^/]*/", "").alias("device")
    return found.select("host", device, "raid_group_id", "serial").unique().collect()


def landed_groups(hosts: pl.Series, landing: Landing) -> pl.DataFrame:
    """The drives of hosts whose RAID group has landed and is no guess, each by its last record: host, drive_id, is_alias, raid_group_id."""
    found = [pl.DataFrame(schema={"host": pl.String(), "drive_id": pl.String(), "is_alias": pl.Boolean(), "raid_group_id": pl.String()})]
    paths = [path for path in table_files(landing.staged.folders, "drives") if source_of(path) is not None]
    if paths:
        named = pl.scan_parquet(paths, glob=False).filter(pl.col("host").is_in(hosts.implode()), ~pl.col("is_group_guessed"))
        last = named.select(*found[0].columns, "valid_from").collect().sort("valid_from", "raid_group_id")
        found.append(last.unique(["host", "drive_id"], keep="last", maintain_order=True).drop("valid_from"))
    return pl.concat(found)


def last_sightings(news: pl.DataFrame, hours: pl.DataFrame, landing: Landing) -> pl.DataFrame:
    """Records of drive_aliases (columns of `news`, new records): where a device has another drive in the next call, that it had the one
    before until the last of its drive-hours between the two ended. `row_no` is below 0: of the new record, or of that drive-hour.

    Only new facts are kept, so nothing else says until when the drive was there. Either call may land first: `hours` are this call's
    drive-hours (drive_id: HOST/DEVICE), and may have ended before another drive that has landed.
    """
    nothing = news.clear()
    paths = [path for path in table_files(landing.staged.folders, "drive_aliases") if source_of(path) == landing.source]
    if not paths or not hours.height:
        return nothing
    hours = hours.select(pl.col("drive_id").alias("alias"), "collected_at", "file_no", "row_no")
    facts = ("alias", "drive_id", "valid_from", "valid_to")
    stated = pl.scan_parquet(paths, glob=False).filter(pl.col("drive_id").is_not_null()).select(facts)
    new = news.filter(pl.col("alias") == pl.col("seen_as"), pl.col("drive_id").is_not_null())
    is_later = pl.col("alias").is_in(hours["alias"].unique().implode()) & (pl.col("valid_from") > hours["collected_at"].min())
    devices = pl.concat([new["alias"], stated.filter(is_later).select("alias").collect()["alias"]]).unique()
    stored = stated.filter(pl.col("alias").is_in(devices.implode())).collect()
    said = pl.concat([stored, new.select(*facts, "file_no", "row_no")], how="diagonal").sort("alias", "valid_from")
    followed = said.with_columns(pl.all().shift(-1).over("alias").name.suffix("_next"))
    passed = followed.filter(pl.col("valid_to").is_null(), pl.col("drive_id") != pl.col("drive_id_next"))
    is_new = pl.col("file_no_next").is_not_null()
    before = passed.filter(is_new, pl.col("file_no").is_null())
    ended = [hours.join(passed.filter(~is_new).drop("file_no", "row_no"), on="alias")]
    if before.height:
        first, until = before.select(pl.col("valid_from").min(), pl.col("valid_from_next").max()).row(0)
        before = before.with_columns(file_no="file_no_next", row_no="row_no_next")
        for path in stored_files(landing.staged, "drive_hours", first, until):
            landed = pl.scan_parquet(path, glob=False).select(pl.col("drive_id").alias("alias"), "collected_at")
            ended.append(landed.filter(pl.col("alias").is_in(before["alias"].implode())).collect().join(before, on="alias"))
    last = pl.concat(ended, how="diagonal").filter(pl.col("collected_at").is_between("valid_from", "valid_from_next", closed="none"))
    last = last.sort("collected_at").unique(["alias", "valid_from"], keep="last", maintain_order=True)
    last = last.select("alias", "drive_id", "file_no", valid_from="collected_at", row_no=-pl.col("row_no"))
    return pl.concat([nothing, last], how="diagonal")


def stored_rows(record_kind: str, landing: Landing, rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Records that have landed of this source, or that this call has staged, that began no later and has a name of these."""
    name, begins = columns[:2]
    paths = [path for path in table_files(landing.staged.folders, record_kind) if source_of(path) == landing.source]
    scans = [landing.records(record_kind).lazy(), *(scan_stored(path, record_kind) for path in paths)]
    wanted = pl.col(name).is_in(rows[name].unique().implode()) & (pl.col(begins) <= rows[begins].max())
    return pl.concat([scan.filter(wanted).select(columns) for scan in scans]).unique().collect()


def _seen(rows: pl.DataFrame, landing: Landing) -> pl.DataFrame:
    """The drive-hours (drive_id, hour_utc) of this source in the hours where records begin, and in those before."""
    begun = rows["valid_from"].dt.truncate("1h")
    hours = pl.concat([begun - HOUR, begun]).unique().sort().to_list()
    paths: list[Path] = []
    if hours:
        first, last = hours[0], hours[-1]
        staged = [part.path for part in landing.staged.parts if part.overlaps(first, last)]
        paths = [*staged, *stored_files(landing.staged, "drive_hours", first, last)]
    if not paths:
        return pl.DataFrame(schema={"drive_id": pl.String(), "hour_utc": pl.Datetime("us")})
    return pl.scan_parquet(paths, glob=False).select("drive_id", "hour_utc").filter(pl.col("hour_utc").is_in(hours)).collect()
