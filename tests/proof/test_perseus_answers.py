"""Alibaba's Perseus set through the whole product, against the numbers known for it (../shared/data/SOURCES.md).

Which inventory makes the known numbers come out: one open period per drive that says data, ssd, and its host as the RAID group.
- Cluster A brings none; the adapter `perseus` states that period for every disk it sees.
- Cluster C comes as a bundle of hourly means, so the test writes the same periods into its `drives` file. Without that file the
  numbers would be the same but for the kind, which would be `unknown`: a drive no inventory knows is a data drive.
- No drive may be listed as parity or spare: the set does not say, and every one of a host's 12 drives is a peer in the known answers.
The set has no I/O counts, so io_count stays null, and C's `coverage` is its non-null samples over the 240 of an hour.
"""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import duckdb
import polars as pl
import pytest

from engine.compiled import models_of
from tests.drivetail.conftest import drivetail
from tests.proof.support import SHARED, broken_sums

DATA = SHARED / "data/perseus"
pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason=f"the Perseus data is not here ({DATA}); it is not ours to distribute"),
    pytest.mark.xdist_group("perseus"),
]


def write_cluster_a(folder: Path) -> None:
    """The 15-second samples in the set's own layout: cluster_A/host_N/DATE.csv.gz."""
    samples = pl.read_parquet(DATA / "cluster_A_15s.parquet").select(
        "host",
        pl.from_epoch(pl.col("ts") - 15).dt.date().alias("day"),
        "ts",
        pl.format("disk{}", "disk").alias("disk_id"),
        pl.col("throughput_bps").alias("throughput"),
        (pl.col("latency_cus") / 100).alias("latency"),
    )
    for (host, day), rows in samples.partition_by("host", "day", as_dict=True, include_key=False).items():
        path = folder / f"cluster_A/host_{host}/{day}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(rows.write_csv(quote_style="non_numeric").encode(), compresslevel=1, mtime=0))


def write_cluster_c(folder: Path) -> None:
    """The hourly means as a call-home bundle, with an inventory (see above)."""
    folder.mkdir(parents=True)
    group = pl.format("cluster_{}/host_{}", "cluster", "host").alias("raid_group_id")
    drive = pl.format("cluster_{}/host_{}/disk{}", "cluster", "host", "disk").alias("drive_id")
    hours = pl.read_csv(DATA / "cluster_C_hourly.csv.gz", try_parse_dates=True)
    hours.select(
        "hour_utc",
        drive,
        group,
        *(pl.lit(None, dtype).alias(name) for name, dtype in SPLIT.items()),
        pl.col("avg_latency_us").alias("latency_us"),
        (pl.col("n_latency") / 240).alias("coverage"),
    ).write_csv(folder / "drive_hours.csv.gz", compression="gzip")
    hours.select(drive, group, pl.lit("data").alias("role"), pl.lit("ssd").alias("kind")).unique().write_csv(folder / "drives.csv")


def verified() -> set[str]:
    """The drives of A and C that were found slow."""
    found = pl.concat([pl.read_csv(DATA / f"cluster_{cluster}_slow_drives.csv") for cluster in "AC"])
    return {"/".join(row) for row in found.select("cluster", "host_name", "disk_id").rows()}


def write_labels(path: Path) -> None:
    """Every drive of both clusters: healthy is who was not found slow."""
    drive = pl.format("cluster_{}/host_{}/disk{}", "cluster", "host", "disk").alias("drive_id")
    hours = pl.concat([pl.read_csv(DATA / f"cluster_{cluster}_hourly.csv.gz").select(drive) for cluster in "AC"])
    verdict = pl.when(pl.col("drive_id").is_in(list(verified()))).then(pl.lit("slow")).otherwise(pl.lit("healthy")).alias("verdict")
    hours.unique().with_columns(verdict).write_csv(path)


SPLIT = {"read_ios": pl.Int64(), "write_ios": pl.Int64(), "read_latency_us": pl.Float64(), "write_latency_us": pl.Float64()}


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """A warehouse of both clusters, as the command makes it."""
    folder = tmp_path_factory.mktemp("perseus")
    write_cluster_a(folder / "a")
    write_cluster_c(folder / "c")
    write_labels(folder / "labels.csv")
    warehouse = folder / "warehouse"
    for command in (
        ("ingest", "perseus", folder / "a", "--strict", "--resolution", "1m"),
        ("ingest", "bundle", folder / "c", "--strict"),
        ("ingest", "labels", folder / "labels.csv", "--strict"),
        ("build",),
    ):
        done = drivetail(*command, "--warehouse", warehouse)
        assert done.exit_code == 0, done.output
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as opened:
        yield opened


KNOWN = {
    # drive-hours, with a slowdown, low coverage, slow, slow at 1.5
    "cluster_A": ((15_120, 15_120, 0, 63, 75), (1_260, 63, 0, 0)),
    "cluster_C": ((66_864, 50_148, 16_716, 1, 720), (4_179, 1, 0, 0)),
}


@pytest.mark.parametrize("cluster", KNOWN)
def test_the_known_answers_come_out(connection: duckdb.DuckDBPyConnection, cluster: str) -> None:
    drive_hours, raid_hours = KNOWN[cluster]
    query = """
        select count(*), count(slowdown), count(*) filter (where exclusion_reason = 'low_coverage'),
            count(*) filter (where is_slow), count(*) filter (where is_slow_15)
        from marts.fct_drive_hours where starts_with(raid_group_id, ?) and kind = 'ssd'
    """
    assert connection.execute(query, [cluster]).fetchone() == drive_hours
    query = """
        select count(*), count(*) filter (where tail_1 >= 2), count(*) filter (where tail_2 >= 2), count(*) filter (where tail_3 >= 2)
        from marts.fct_raid_hours where starts_with(raid_group_id, ?) and kind = 'ssd' and data_drive_count = 12
    """
    assert connection.execute(query, [cluster]).fetchone() == raid_hours


def test_every_verified_slow_drive_is_chronic_and_no_other(connection: duckdb.DuckDBPyConnection) -> None:
    assert len(verified()) == 34
    chronic = connection.execute("select drive_id from marts.fct_drive_slowness where is_chronic").fetchall()
    assert {drive for (drive,) in chronic} == verified()


def test_detectors_are_held_against_the_verified_drives(connection: duckdb.DuckDBPyConnection) -> None:
    """Chronic finds every one and no other; an hour at 2x three of them."""
    query = """
        select detector, true_positive_count, false_positive_count, false_negative_count, precision_ratio, recall_ratio, f1
        from report.detector_scores where labelled_count > 0 and unseen_count = 0
    """
    scores = {detector: rest for detector, *rest in connection.execute(query).fetchall()}
    assert scores["chronic"] == [34, 0, 0, 1.0, 1.0, 1.0]
    assert scores["slow_2x"] == [3, 0, 31, 1.0, 3 / 34, 6 / 37]
    # what else README.md and docs/detectors.md tell: found and false alarms
    assert {detector: tuple(counts[:2]) for detector, counts in scores.items() if detector not in ("chronic", "slow_2x")} == {
        "slow_1_5x": (18, 0),
        "mean_3_sigma": (18, 2),
        "tikv_slow_score": (2, 0),
        "iaso_aimd": (2, 0),
        "hdfs_outlier": (0, 0),
        "zfs_sit_out": (0, 0),
        "ceph_mad": (0, 0),
        "own_history": (0, 0),
        "grafana_dbscan": (16, 0),
        "grafana_mad": (34, 130),
        "datadog_mad": (34, 70),
    }


def test_perseus_flags_the_verified_drives_of_cluster_a_and_no_other(connection: duckdb.DuckDBPyConnection) -> None:
    """Minutes of 420 RAID groups' days; of cluster C, of which there are hours only, it says nothing."""
    query = """
        select drive_id, max(score), count(*) filter (where is_flagged) from marts.fct_detector_verdicts
        where detector = 'perseus' group by drive_id order by max(score) desc, drive_id limit 3
    """
    assert connection.execute(query).fetchall() == [
        ("cluster_A/host_25/disk8", 635.0, 13),
        ("cluster_A/host_22/disk11", 575.0, 13),
        ("cluster_A/host_28/disk4", 26.0, 0),
    ]
    query = """
        select labelled_count, unseen_count, true_positive_count, false_positive_count, false_negative_count, true_negative_count
        from report.detector_scores where detector = 'perseus'
    """
    assert connection.execute(query).fetchone() == (1_476, 1_116, 2, 0, 0, 358)


def published_scores() -> pl.DataFrame:
    """Risk of each drive and day of cluster C by Perseus' published re-implementation; null is 0."""
    scores = pl.read_csv(DATA / "golden_perseus_scores.csv.gz", try_parse_dates=True, schema_overrides={"avg": pl.Float64})
    return scores.select(
        pl.format("{}/{}/{}", "cluster", "host", "disk").alias("drive_id"),
        pl.col("date").alias("day_utc"),
        pl.col("duration").alias("event_count"),
        "avg",
        pl.col("score").fill_null(0).cast(pl.Int64).alias("risk"),
        pl.col("last_15_score").fill_null(0).cast(pl.Int64).alias("sum_of_set"),
        (pl.col("decision_status") == "T").alias("is_flagged"),
    )


def test_events_of_cluster_c_have_the_published_risks() -> None:
    """Its samples are not here, only its hours: events and their mean ratio are taken as published, what follows is the product's SQL.

    Every risk is the same. The published sum is the same on every row of a drive: that of the whole set of 15 days, later ones too. Ours
    ends with the day, so it is the same from the last day with a risk on, and less before.
    """
    golden = published_scores()
    assert golden.height == 16_716
    models = models_of()
    at_risk = models.by_relation["intermediate.int_drive_days__at_risk"]
    with duckdb.connect() as ours:
        ours.execute("create schema intermediate")
        ours.execute(
            """
            create table intermediate.int_sampled_days as
            select day_utc, drive_id, 36 as window_count, event_count, coalesce(avg * event_count, 0) as event_ratio_sum,
                avg as worst_ratio, cast(day_utc as timestamp) as worst_window_utc
            from golden
            """
        )
        ours.execute(f"create view {at_risk.relation} as {models.with_thresholds({})(at_risk.sql)}")
        rows = ours.execute(
            """
            select
                ours.risk = golden.risk, ours.window_risk - golden.sum_of_set, ours.window_risk >= 50, golden.is_flagged,
                golden.drive_id, golden.day_utc
            from intermediate.int_drive_days__at_risk as ours inner join golden using (drive_id, day_utc)
            """
        ).fetchall()
    assert [is_same for is_same, *_ in rows] == [True] * 16_716
    assert (sum(less == 0 for _, less, *_ in rows), sum(less < 0 for _, less, *_ in rows)) == (9_833, 6_883)
    assert Counter((ours, theirs) for _, _, ours, theirs, *_ in rows) == {(False, False): 16_236, (True, True): 339, (False, True): 141}
    # the difference is what is yet to come; on the last day there is none
    whole = golden.group_by("drive_id").agg(pl.col("risk").sum())
    assert golden.join(whole, on="drive_id").filter(pl.col("sum_of_set") != pl.col("risk_right")).height == 0
    last = golden["day_utc"].max()
    assert all(less == 0 and ours == theirs for _, less, ours, theirs, _, day in rows if day == last)
    flagged = {drive for _, _, is_ours, _, drive, _ in rows if is_ours}
    assert flagged == {drive for drive in verified() if drive.startswith("cluster_C")}


def test_the_sums_hold(connection: duckdb.DuckDBPyConnection) -> None:
    assert broken_sums(connection) == []


def test_drives_slow_in_most_hours_are_to_be_replaced_and_no_other(connection: duckdb.DuckDBPyConnection) -> None:
    """Three hours a day for 14 days: 63 slow hours of two drives. Those of cluster C are mild: 1 slow hour, the year before."""
    query = """
        select drive_id from marts.fct_drive_slowness where drive_id like 'cluster_A%' and 2 * slow_hours > drive_hours
    """
    mostly_slow = {drive for (drive,) in connection.execute(query).fetchall()} & verified()
    assert len(mostly_slow) == 2
    found = connection.execute("select drive_id, verdict, replace_rule, own_tail_hours_28d from marts.replacement_candidates").fetchall()
    assert {drive for drive, verdict, *_ in found if verdict == "replace"} == mostly_slow
    assert all(rule == "lasting" and hours <= 14 * 24 for *_, rule, hours in found)
