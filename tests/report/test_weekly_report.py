"""The weekly report: what it says is what the marts hold, it opens anywhere, and it stays whole when there is little to say."""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from hostile import GROUP, MODEL, SLOW
from pages import Page, check_accessible, opened

from drivetail.ask.decisions import decide
from drivetail.cli import main
from engine.build import build
from engine.publish import kept_publications
from engine.read import QueryError, fetch, open_published
from engine.warehouse import PROJECT, Warehouse
from ingest import ingest
from ingest.contract.values import utc_now
from ingest.raw.store import list_deliveries
from report import write_report
from report.page.numbers import percent, ratio
from report.page.pdf import print_page
from report.weekly import write as weekly
from report.weekly.write import parse_week
from tests.golden import copied
from tests.report.conftest import quiet_hours

pytestmark = pytest.mark.xdist_group("report")

WEEK = datetime(2026, 1, 12)
WEEKLY = PROJECT / "report" / "weekly" / "page.html.j2"
SECTIONS = [
    "actions", "decisions", "changes", "slo", "drives", "candidates", "tails", "chronic", "groups", "group-hours", "causes", "unplugs",
    "classes", "heat", "trend", "coverage", "landed", "words",
]  # fmt: skip


@pytest.fixture(scope="session")
def eventful_report(eventful: Warehouse) -> Path:
    return write_report(eventful)


@pytest.fixture(scope="session")
def uneventful_report(uneventful: Warehouse) -> Path:
    return write_report(uneventful)


@pytest.fixture(scope="session")
def numbers(eventful_report: Path) -> dict[str, Any]:
    """The JSON beside the eventful report, by name: `sql` and `rows`."""
    document = json.loads(eventful_report.with_suffix(".json").read_text())
    assert (document["week"], document["is_complete"], document["known_at"]) == ("2026-W03", True, None)
    return document["numbers"]


def value(warehouse: Warehouse, query: str) -> Any:
    with open_published(warehouse) as connection:
        rows = connection.execute(query).fetchall()
    return rows[0][0]


# --------------------------------------------------------------------------------------------------------------------
# Which week, which file


def test_the_report_is_of_the_last_complete_week(eventful: Warehouse, eventful_report: Path):
    assert eventful_report == eventful.root / "reports" / "2026-W03.html"
    assert eventful_report.stat().st_size > 200_000
    assert sorted(path.name for path in eventful_report.parent.iterdir()) == ["2026-W03.html", "2026-W03.json"]


def test_another_week_and_an_earlier_publication_can_be_asked_for(eventful: Warehouse, tmp_path: Path):
    publication = sorted(eventful.publications.glob("*.duckdb"))[-1].stem
    path = write_report(eventful, week="2026-w04", out=tmp_path / "new" / "report.html", publication=publication)
    assert path == tmp_path / "new" / "report.html"
    page = Page(path)
    assert "Issued again as known at" in page.words
    assert "Slow drives in week 2026-W04" in page.words
    assert "The week is not complete: the fleet's data end on 2026-01-21 23:00 UTC." in page.words


@pytest.mark.parametrize("week", ["2025-W40", "2026-W54", "January", "2026-W", "", "2026-W3x"])
def test_a_week_without_data_names_those_that_have(eventful: Warehouse, tmp_path: Path, week: str):
    with pytest.raises(QueryError, match=r"weeks there are: 2026-W02, 2026-W03, 2026-W04"):
        write_report(eventful, week=week, out=tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_the_command_says_where_it_is(eventful: Warehouse, tmp_path: Path):
    result = CliRunner().invoke(
        main, ["report", "-w", str(eventful.root), "--week", "2026-W02", "--format", "json", "--out", str(tmp_path / "r.json")]
    )
    assert result.exit_code == 0
    assert result.output == f"Report: {tmp_path / 'r.json'}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    result = CliRunner().invoke(main, ["report", "-w", str(eventful.root), "--week", "2027-W02"])
    assert result.exit_code == 1
    assert "2027-W02 has no valid RAID-hour; weeks there are: 2026-W02" in result.output


def test_a_warehouse_without_a_raid_hour_is_an_error(tmp_path: Path):
    nothing = Warehouse(tmp_path / "warehouse")
    build(nothing)
    with pytest.raises(QueryError, match="no week has a valid RAID-hour yet"):
        write_report(nothing)


def test_week_names():
    assert parse_week("2026-W01") == datetime(2025, 12, 29)
    assert parse_week("2020-W53") == datetime(2020, 12, 28)
    assert parse_week("2021-W53") is None


# --------------------------------------------------------------------------------------------------------------------
# What it says


def test_its_numbers_are_the_marts(eventful: Warehouse, eventful_report: Path, numbers: dict[str, Any]):
    shown = Page(eventful_report).metrics()
    in_week = f"hour_utc >= timestamp '{WEEK}' and hour_utc < timestamp '{WEEK + timedelta(days=7)}'"
    hours, raid_hours = f"from marts.fct_drive_hours where {in_week}", f"from marts.fct_raid_hours where {in_week}"
    expected = {
        "tail_hours": f"select count(*) {raid_hours} and is_tail_hour",
        "slow_drive_hours": f"select count(*) {hours} and is_slow",
        "drive_count": f"select count(distinct drive_id) {hours}",
    }
    for kind in ("disk", "ssd"):
        expected |= {
            f"tail_hours_{kind}": f"select count(*) {raid_hours} and is_tail_hour and kind = '{kind}'",
            f"raid_hours_{kind}": f"select count(*) {raid_hours} and kind = '{kind}'",
            f"slow_drive_hours_{kind}": f"select count(*) {hours} and is_slow and kind = '{kind}'",
            f"drive_hours_{kind}": f"select count(slowdown) {hours} and kind = '{kind}'",
            f"drive_count_{kind}": f"select count(distinct drive_id) {hours} and kind = '{kind}'",
        }
    assert shown["publication_id"] is None
    assert value(eventful, "select publication_id from marts.publication") in Page(eventful_report).words
    assert {name: int(shown[name] or -1) for name in expected} == {name: value(eventful, query) for name, query in expected.items()}
    assert int(shown["tail_hours_disk"] or 0) > 0
    landed = {row["record_kind"]: row for row in numbers["landing"]["rows"]}
    assert landed["all"]["rows_delivered"] == value(eventful, "select sum(rows_delivered) from marts.ingested_files")
    assert landed["all"]["rows_rejected"] == value(eventful, "select count(*) from marts.rejected_records") > 0
    accepted = "select (select count(*) from raw.drive_hours) - (select count(*) from raw.retired_drive_hours)"
    assert landed["drive_hours"]["rows_accepted"] == value(eventful, accepted)
    for kind in ("disk", "ssd"):
        coverage = f"from marts.fct_weekly_coverage where week_utc = timestamp '{WEEK}' and kind = '{kind}'"
        assert float(shown[f"reported_ratio_{kind}"] or 0) == value(eventful, f"select reported_ratio {coverage}")


def test_a_threshold_of_ssds_alone_reaches_the_report(eventful: Warehouse, eventful_report: Path, tmp_path: Path):
    apart = copied(eventful, tmp_path / "apart")
    apart.settings.write_text("[thresholds.ssd]\nslow_threshold = 3.0\nmild_threshold = 1.3\n")
    build(apart, daily=True)
    hours = "select count(*) from marts.fct_drive_hours where kind = '{}' and {}"
    assert value(apart, hours.format("ssd", "is_slow")) == value(eventful, hours.format("ssd", "slowdown >= 3")) > 0
    assert value(apart, hours.format("ssd", "is_slow_15")) == value(eventful, hours.format("ssd", "slowdown >= 1.3"))
    assert value(apart, hours.format("disk", "is_slow")) == value(eventful, hours.format("disk", "is_slow")) > 0
    intervals = (
        "select count(*) from marts.fct_slowdown_intervals where degree = 'slow' and (first_slowdown < threshold or threshold <> {})"
    )
    assert value(apart, intervals.format("case kind when 'ssd' then 3.0 else 2.0 end")) == 0

    path = write_report(apart)
    before, shown = Page(eventful_report).metrics(), Page(path).metrics()
    tails = json.loads(path.with_suffix(".json").read_text())["numbers"]["tails"]["rows"]
    (tail_hours,) = [row["tail_1_hours"] for row in tails if (row["kind"], row["threshold"]) == ("ssd", 3.0)]
    in_week = f"hour_utc >= timestamp '{WEEK}' and hour_utc < timestamp '{WEEK + timedelta(days=7)}'"
    assert int(shown["slow_drive_hours_ssd"] or -1) == value(eventful, f"{hours.format('ssd', 'slowdown >= 3')} and {in_week}")
    assert tail_hours == int(shown["tail_hours_ssd"] or -2) < int(before["tail_hours_ssd"] or -3)
    assert shown["slow_drive_hours_disk"] == before["slow_drive_hours_disk"]
    assert "took 2 times (disk, unknown) or 3 times (ssd) as long" in Page(path).words
    assert "took 2 times as long" in Page(eventful_report).words


def test_the_report_has_every_section_in_order_and_fills_it(eventful_report: Path):
    page = Page(eventful_report)
    sections = [str(attrs["id"]) for tag, attrs in page.tags if tag == "section"]
    assert [name for name in sections if not re.fullmatch(r"(drive|group)-\d+", name)] == SECTIONS
    assert {"drive-1", "group-1"} <= set(sections)
    inside = {attrs["href"] for tag, attrs in page.tags if tag == "a" and str(attrs.get("href")).startswith("#")}
    assert inside <= {f"#{attrs['id']}" for _, attrs in page.tags if attrs.get("id")}
    assert {"#drive-1", "#group-1"} <= inside
    figures = [attrs["id"] for tag, attrs in page.tags if tag == "div" and attrs.get("class") == "plotly-graph-div"]
    assert len(figures) == len(set(figures))
    assert {"figure-drive-1", "figure-heat-disk", "figure-trend-tail_hours"} <= set(figures)
    assert "drivetail explain D0000" in page.words


def test_every_number_comes_with_the_sql_that_gives_it(eventful: Warehouse, eventful_report: Path, numbers: dict[str, Any]):
    page = Page(eventful_report)
    with open_published(eventful) as connection:
        for name, answer in numbers.items():
            assert answer["sql"] in page.words, name
            cursor = connection.execute(answer["sql"])
            columns = [column[0] for column in cursor.description]
            rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
            assert json.loads(json.dumps(rows, default=lambda instant: instant.isoformat())) == answer["rows"], name
    assert {name for name, answer in numbers.items() if not answer["rows"]} <= {
        "group_hours", "chronic", "candidate_quarter", "guessed", "unknown_kinds", "open_alerts", "verdict_backtest", "group_names",
    }  # fmt: skip


def test_the_budget_on_the_page_is_that_of_its_json(eventful_report: Path, numbers: dict[str, Any]):
    shown = Page(eventful_report).metrics()
    expected = {
        f"{name}_{row['kind']}_{row['threshold']}": row[name] for row in numbers["slo"]["rows"] for name in ("good_hours", "budget_used")
    }
    assert len(expected) > 3 and {name: float(shown[name] or -1) for name in expected} == expected


def test_a_group_that_was_slow_as_a_whole_is_named_after_it_is_over(eventful: Warehouse, tmp_path: Path):
    """g1 on the last day of the week, and g2 before it; the first part names the first."""
    apart = copied(eventful, tmp_path / "apart")
    with duckdb.connect(str(apart.published)) as connection:
        for group, ended in (("g1", WEEK + timedelta(days=6)), ("g2", WEEK - timedelta(hours=1))):
            about = f"'raid_group' as subject_type, '{group}' as subject_id, 'whole_group' as reason, '{group}' as alert_id"
            hours = f"timestamp '{ended - timedelta(hours=2)}' as first_slow_hour_utc, timestamp '{ended}' as last_slow_hour_utc"
            over = f"null as part_of, 3.4 as median_slowdown, timestamp '{ended + timedelta(days=1)}' as cleared_at"
            alerts = f"select * replace ({about}, {hours}, {over}) from marts.fct_slow_alerts where reason = 'acute' limit 1"
            connection.execute(f"insert into marts.fct_slow_alerts by name {alerts}")
    words = Page(write_report(apart)).words
    part = words[words.index("What to do this week") : words.index("What was decided")]
    assert re.search(r"raid group g1\s*slow as a whole: 3\.40. its usual latency.*over since 2026-01-19 00:00", part)
    assert "raid group g2" not in words


def test_a_decision_after_a_publication_is_not_in_its_report(eventful: Warehouse, numbers: dict[str, Any]):
    """The questions of a report of today beside those of one as known before the decision."""
    drawn = {row["drive_id"] for row in numbers["drives"]["rows"]}
    first = next(row["drive_id"] for row in numbers["candidates"]["rows"] if row["drive_id"] in drawn)
    before, held = utc_now(), eventful.decisions.read_bytes()
    eventful.decisions.write_bytes(b"")

    def asked(known_at: str) -> tuple[Any, ...]:
        with open_published(eventful) as connection:
            candidates, drives, decisions = (
                fetch(connection, numbers[name]["sql"].replace("timestamp '9999-12-31'", known_at))
                for name in ("candidates", "drives", "decisions")
            )
        verdicts = {row["decided_verdict"] for row in drives if row["drive_id"] == first}
        (candidate,) = (row for row in candidates if row["drive_id"] == first)
        return candidate["decision"], candidate["decided_by"], verdicts, [row["state"] for row in decisions]

    decide(eventful, [first], "replace", by="ada", note="slow for weeks")
    try:
        assert asked("timestamp '9999-12-31'") == ("replace", "ada", {"replace"}, ["pending"])
        assert asked(f"timestamp '{before}'") == (None, None, {None}, [])
        decide(eventful, [first], "dismiss", by="bob", note="known", until=WEEK)
        assert asked("timestamp '9999-12-31'") == (None, None, {None}, ["expired"])
    finally:
        eventful.decisions.write_bytes(held)


def test_a_publication_that_is_not_kept_names_those_that_are(eventful: Warehouse, tmp_path: Path):
    publication = sorted(eventful.publications.glob("*.duckdb"))[-1].stem
    with pytest.raises(QueryError, match=f"publication 000099-x is not kept; kept are: .*{publication}"):
        write_report(eventful, publication="000099-x", out=tmp_path / "r.html")
    with pytest.raises(QueryError, match=r"nothing had landed at 2020-01-01 00:00:00 UTC; the first delivery landed at 20"):
        write_report(eventful, as_known_at=datetime(2020, 1, 1), out=tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("2020-01-01", "nothing had landed at 2020-01-01 00:00:00 UTC"),
        ("2020-01-01T07", "nothing had landed at 2020-01-01 07:00:00 UTC"),
        # as messages and marts print them
        ("2020-01-01 07:30:01.5", "nothing had landed at 2020-01-01 07:30:01.500000 UTC"),
        ("2020-01-01T07:30+02:00", "nothing had landed at 2020-01-01 05:30:00 UTC"),
        ("yesterday", "'yesterday' is not a time since 1970; give one such as 2026-01-05"),
        ("0001-01-01T00:00+02:00", "is not a time"),
    ],
)
def test_a_time_is_taken_as_it_is_printed(eventful: Warehouse, given: str, said: str):
    result = CliRunner().invoke(main, ["report", "--as-known-at", given, "--warehouse", str(eventful.root)])
    assert result.exit_code and said in result.output


def test_a_kept_publication_is_reported_unless_more_had_landed_then(eventful: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    built: list[datetime] = []

    @contextmanager
    def rebuilt(warehouse: Warehouse, instant: datetime) -> Iterator[Warehouse]:
        built.append(instant)
        yield warehouse

    monkeypatch.setattr("report.weekly.write.built_as_known_at", rebuilt)

    def is_built(instant: datetime) -> bool:
        with weekly._opened(eventful, None, instant) as (connection, known_at):
            assert known_at == instant and connection.execute("select count(*) from marts.publication").fetchall() == [(1,)]
        return built[-1:] == [instant]

    published = kept_publications(eventful)[-1].published_at
    assert not is_built(published) and not is_built(published + timedelta(days=9))
    # what lands later, and is not built yet, was known from then on
    ingest("bundle", [quiet_hours(tmp_path / "more", range(2))], eventful.root)
    try:
        landed = datetime.fromisoformat(list_deliveries(eventful.root)[-1].record()["committed_at"])
        assert not is_built(landed - timedelta(microseconds=1)) and is_built(landed)
    finally:
        shutil.rmtree(list_deliveries(eventful.root)[-1].path)


@pytest.mark.soak
def test_a_report_of_a_past_time_has_only_what_had_landed_then(tmp_path: Path):
    """Ten hours came, then two more, then a decision; both are built. Told as known after the first: forty rows, nothing decided."""
    warehouse = Warehouse(tmp_path / "warehouse")
    ingest("bundle", [quiet_hours(tmp_path / "first", range(10))], warehouse.root)
    (first,) = list_deliveries(warehouse.root)
    then = datetime.fromisoformat(json.loads((first.path / "delivery.json").read_text())["committed_at"])
    ingest("bundle", [quiet_hours(tmp_path / "second", range(10, 12))], warehouse.root)
    build(warehouse)
    decide(warehouse, ["d0"], "watch", by="ada", note="why not")
    for known_at, rows, decisions in ((then, 40, 0), (None, 48, 1)):
        path = write_report(warehouse, as_known_at=known_at, output="json")
        document = json.loads(path.read_text())
        assert document["known_at"] == (None if known_at is None else known_at.isoformat())
        assert document["numbers"]["landing"]["rows"][0]["rows_delivered"] == rows
        assert len(document["numbers"]["decisions"]["rows"]) == decisions
    assert not list(warehouse.root.glob(".as-known-at-*"))


def test_a_pdf_without_a_browser_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("report.page.pdf.which", lambda name: None)
    with pytest.raises(QueryError, match=r"a PDF needs Chromium, but none of chromium, .* is on the PATH: install it"):
        print_page("<p>page</p>")


def test_a_pdf_is_the_page_printed_with_every_figure(browser: Any, eventful_report: Path):
    printed = print_page(eventful_report.read_text(encoding="utf-8"))
    assert printed.startswith(b"%PDF-") and printed.count(b"/Type /Page\n") > 2
    # what Chromium prints: nobody scrolls there
    page = browser.new_page()
    page.goto(f"{eventful_report.as_uri()}#print")
    page.wait_for_selector("html[data-tables=ready]")
    drawn = page.eval_on_selector_all(".plotly-graph-div", "all => all.map(one => one.querySelectorAll('svg.main-svg').length)")
    assert drawn and all(drawn)
    page.close()


def test_the_page_is_accessible_to_screen_readers(eventful_report: Path):
    check_accessible(Page(eventful_report))


def test_numbers_are_never_rounded_to_all_or_nothing():
    shares = [None, 0.0, 1.0, 0.000001, 0.00012, 0.0042, 0.0312, 0.5, 0.9963, 0.9996, 0.999999]
    assert [percent(share) for share in shares] == [
        "\u2013", "0%", "100%", "< 0.001%", "0.012%", "0.42%", "3.1%", "50.0%", "99.6%", "99.96%", "> 99.99%",
    ]  # fmt: skip
    changes = [-share for share in shares[2:] if share is not None]
    assert [percent(share) for share in changes] == [
        "-100%", "> -0.001%", "-0.012%", "-0.42%", "-3.1%", "-50.0%", "-99.6%", "-99.96%", "< -99.99%",
    ]  # fmt: skip
    assert [ratio(number) for number in (None, 2.0, 23.456, 1234.5)] == ["\u2013", "2.00\u00d7", "23.5\u00d7", "1,234\u00d7"]


# --------------------------------------------------------------------------------------------------------------------
# Little to say, and names that mean harm


def test_a_fleet_that_never_was_slow(uneventful_report: Path):
    page = Page(uneventful_report)
    words = page.words
    # no empty plots
    assert not [attrs["id"] for tag, attrs in page.tags if tag == "div" and attrs.get("class") == "plotly-graph-div"]
    for sentence in (
        "The week is not complete",
        "No drive was slow this week: none of 120 drive-hours reached 2 times the median of its RAID group.",
        "there is no earlier week to compare with",
        "Share of RAID-hours that were tail hours: none in the weeks up to this one.",
        "No row was rejected.",
        "Every drive-hour of a data drive that came could be measured.",
        "No drive was slow this week, so none cost anything.",
        "No RAID group had a tail hour this week.",
        "No drive needs attention this week.",
        "No drive was unplugged this week.",
        "No drive is chronic",
        "drives of unknown kind",
        "No drive was slow this week or in the week before.",
        "No RAID group was slow as a whole this week.",
        "No decision was recorded",
        "No slow interval began this week.",
        "No event was reported for this week.",
        "No hour of this week had a tail.",
    ):
        assert sentence in words


def test_markup_in_names_is_text(hostile_report: Path):
    page = Page(hostile_report)
    for name in (SLOW, GROUP, MODEL):
        assert name in page.words
        assert name not in page.text
    assert not [tag for tag, _ in page.tags if tag in {"img", "i"}]
    assert page.text.count("<script") == page.text.count("</script>")
    assert f"drivetail explain '{SLOW}'" in page.words


# --------------------------------------------------------------------------------------------------------------------
# In a browser


@pytest.mark.parametrize(
    ("fleet", "seen"),
    [
        ("eventful", ((1180, "light"), (420, "light"), (420, "dark"))),
        ("uneventful", ((800, "light"),)),
        ("hostile", ((1180, "light"),)),
    ],
)
def test_the_page_opens_offline_without_an_error(
    browser: Any, request: pytest.FixtureRequest, fleet: str, seen: tuple[tuple[int, str], ...]
):
    path = request.getfixturevalue(f"{fleet}_report")
    for width, scheme in seen:
        page, troubles = opened(browser, path, width, scheme)
        assert troubles == []
        figures = page.eval_on_selector_all(
            ".plotly-graph-div",
            "all => all.map(one => [one.id, one.querySelectorAll('svg.main-svg').length, one._fullLayout.width, one.clientWidth])",
        )
        assert figures or fleet == "uneventful"
        for name, drawn, drawn_width, room in figures:
            assert drawn, f"{name} is not drawn"
            assert abs(drawn_width - room) <= 1, f"{name} is {drawn_width} wide in {room}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.context.close()


SORTED_BY = {
    "The drives that cost most": ("drives", [
        "drive_id", "age_year", "slow_hours", "max_slowdown", "longest_interval_hours", "median_rate_imbalance", "flagging_detector_count",
        "tail_hours", "last_event_at",
    ]),
    "On a list, but nothing to do": ("actions", ["own_tail_hours_28d", "week_tail_hours"]),
    "Decisions": ("decisions", ["tail_hour_ratio_before", "tail_hour_ratio_after"]),
    "Slow drive-hours": ("classes", [
        "drive_count", "raid_group_count", "slow_drive_count", "slow_drive_hours", "drive_hours", "slow_ratio", "all_weeks_slow_ratio",
    ]),
}  # fmt: skip
"""A table that sorts -> its question, and the columns of the answer that its cells are sorted by, in their order."""
LISTED = {
    label: (question, [column.partition("=")[0] for column in columns.split("|")][1:])
    for label, question, columns in re.findall(r'listing\("([^"]+)", facts\.(\w+), "([^"]+)"', WEEKLY.read_text(encoding="utf-8"))
}
"""The same of tables whose columns the template names. All their numbers sort."""


def as_cell(value: Any) -> str:
    """A value as a cell is sorted by it, whatever stands between a day and its time."""
    return "" if value is None else str(value).replace(" ", "T")


def test_tables_sort_by_number_and_filter_by_word(browser: Any, eventful_report: Path, numbers: dict[str, Any]):
    page, troubles = opened(browser, eventful_report)
    page.wait_for_selector("html[data-tables=ready]")
    shown = page.eval_on_selector_all(
        "main table:has([data-order])",
        """all => all.map(table => [table.closest("[role=region]").ariaLabel.split(":")[0], [...table.tBodies[0].rows].map(
            row => [row.textContent, [...row.cells].filter(cell => "order" in cell.dataset).map(cell => cell.dataset.order)])])""",
    )
    assert {*SORTED_BY, "Tails by threshold", "Causes of slow intervals"} <= {name for name, _ in shown}
    assert {name for name, _ in shown if not name.startswith("Slow drives of")} <= {*SORTED_BY, *LISTED}
    for title, (question, columns) in {**SORTED_BY, **LISTED}.items():
        rows = [row for name, table_rows in shown if name == title for row in table_rows]
        answers = [row for row in numbers[question]["rows"] if not row.get("needs_person")]
        if title in LISTED:
            columns = [name for name in columns if any(type(row[name]) in (int, float) for row in answers)]
        for (text, cells), row in zip(rows, answers, strict=True):
            assert [as_cell(cell) for cell in cells] == [as_cell(row[column]) for column in columns], (title, row)
            assert all(row[name] in text for name in ("drive_id", "id") if name in row), (title, row)
    table = page.locator("#costliest table.rich")
    heading = table.locator("thead th", has_text="Slow hours")
    heading.locator("[role=button]").focus()
    for direction in ("ascending", "descending"):
        page.keyboard.press("Enter")
        table.locator(f"thead th[aria-sort={direction}]", has_text="Slow hours").wait_for()
    most = max(row["slow_hours"] for row in numbers["drives"]["rows"])
    assert table.locator("tbody tr").first.locator("td[data-order]").nth(1).get_attribute("data-order") == str(most)
    first = numbers["states"]["rows"][0]["drive_id"]
    page.locator("#changed input").fill(first)
    assert page.locator("#changed tbody tr").count() == 1 and first in page.locator("#changed tbody th").inner_text()
    assert troubles == []
    page.context.close()


def test_the_page_is_dark_on_request_and_draws_open_sections(browser: Any, eventful_report: Path):
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(eventful_report.as_uri())
    drawn = "[document.querySelectorAll('.js-plotly-plot').length, document.querySelectorAll('.plotly-graph-div').length]"
    before, all_of_them = page.evaluate(drawn)
    assert before < all_of_them
    shown = "[...document.querySelectorAll('.plotly-graph-div')].every(one => !one.checkVisibility() || one.querySelector('svg'))"
    # not wait_for_function: the page lets nobody evaluate text in it
    waited_until = time.monotonic() + 60
    while not page.evaluate(shown) and time.monotonic() < waited_until:
        page.wait_for_timeout(100)
    assert page.evaluate(shown)
    assert page.evaluate(drawn)[0] < all_of_them
    page.evaluate("drawAll()")
    assert page.evaluate(drawn) == [all_of_them, all_of_them]
    style = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
    assert page.eval_on_selector("body", style) == ["rgb(20, 25, 31)", "rgb(228, 232, 237)"]
    assert page.eval_on_selector(".plotly-graph-div .xtick text", "one => getComputedStyle(one).fill") == "rgb(228, 232, 237)"
    page.emulate_media(media="print")
    assert page.eval_on_selector("body", style)[0] == "rgb(255, 255, 255)"
    context.close()


def test_figures_show_the_answers(browser: Any, eventful_report: Path, numbers: dict[str, Any]):
    page, troubles = opened(browser, eventful_report)
    answers = {name: answer["rows"] for name, answer in numbers.items()}
    hours = [(WEEK + timedelta(hours=hour)).isoformat() for hour in range(168)]
    data = """id => document.getElementById(id)._fullData.map(
        one => ({x0: one.x0, says: one.hovertemplate, y: [...(one.y ?? [])], z: (one.z ?? []).flat(), x: [...(one.x ?? [])]}))"""
    for kind in ("disk", "ssd"):
        tails = {row["hour_utc"]: row["tail_hour_ratio"] for row in answers["fleet_hours"] if row["kind"] == kind}
        (heat,) = page.evaluate(data, f"figure-heat-{kind}")
        assert heat["z"] == [tails.get(hour) for hour in hours] and any(heat["z"])
    first = answers["drives"][0]
    own = {row["hour_utc"]: row for row in answers["drive_series"] if row["drive_id"] == first["drive_id"]}
    figure_of = dict(
        page.eval_on_selector_all("#drives section.one", "all => all.map(one => [one.ariaLabel.slice(6), 'figure-' + one.id])")
    )
    assert {
        row["drive_id"] for name in ("actions", "drives", "decisions") for row in answers[name] if row.get("state") != "replaced"
    } <= set(figure_of)
    traces = page.evaluate(data, figure_of[first["drive_id"]])
    (slowdowns,) = [trace["y"] for trace in traces if trace["says"].startswith("slowdown ")]
    assert slowdowns == pytest.approx([own[hour]["slowdown"] if hour in own else math.nan for hour in hours], rel=1e-6, nan_ok=True)
    bands = {(row["raid_group_id"], row["hour_utc"]): row for row in answers["peer_bands"]}
    for says, column in (("the others from", "lowest_slowdown"), ("their middle half up to", "upper_quartile_slowdown")):
        for trace in (trace for trace in traces if trace["says"].startswith(says)):
            begins = datetime.fromisoformat(trace["x0"].split(".")[0])
            for number, shown in enumerate(trace["y"]):
                hour = (begins + timedelta(hours=number)).isoformat()
                assert shown == pytest.approx(bands[own.get(hour, first)["raid_group_id"], hour][column], rel=1e-6)
        assert any(trace["says"].startswith(says) for trace in traces)
    marked = {row["drive_id"] for row in answers["drive_events"]} & {row["drive_id"] for row in answers["drives"]}
    for drive in (row for row in answers["drives"] if row["drive_id"] in marked):
        (marks,) = [each["x"] for each in page.evaluate(data, figure_of[drive["drive_id"]]) if " at " in each["says"]]
        told = [row["occurred_at"] for row in answers["drive_events"] if row["drive_id"] == drive["drive_id"]]
        assert [datetime.fromisoformat(mark) for mark in marks] == [datetime.fromisoformat(instant) for instant in told]
    assert marked
    assert troubles == []
    page.context.close()


def test_no_control_of_a_figure_connects_outward(browser: Any, eventful_report: Path):
    """Every button of every mode bar is pressed, and everything a right mouse button or a double click does is done."""
    page, troubles = opened(browser, eventful_report)
    windows: list[Any] = []
    page.context.on("page", lambda found: windows.append(found))
    page.evaluate("() => { window.open = () => { document.title = 'opened'; return null; }; }")
    figures = page.locator(".js-plotly-plot")
    pressed = set()
    for number in range(min(figures.count(), 6)):
        figure = figures.nth(number)
        figure.scroll_into_view_if_needed()
        figure.hover()
        for button in figure.locator(".modebar-btn").all():
            pressed.add(button.get_attribute("data-title"))
            button.dispatch_event("click")
        figure.dblclick(position={"x": 120, "y": 60})
    page.wait_for_timeout(500)
    assert pressed == {"Download plot as a PNG", "Zoom", "Reset axes"}
    assert page.locator("a[href^=http]").count() == 0 and page.title() != "opened"
    assert not windows and not [trouble for trouble in troubles if not trouble.startswith("request: blob:")]
    page.context.close()


def test_printing_from_the_browser_loses_nothing(browser: Any, eventful_report: Path):
    """As a reader prints who has not scrolled: what is folded away opens, every figure is drawn and fits, then all is as it was."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(eventful_report.as_uri())
    page.wait_for_selector("html[data-tables=ready]")
    page.evaluate(
        "addEventListener('beforeprint', () => { window.folded = document.querySelectorAll('details.more:not([open])').length; })"
    )
    assert page.pdf(format="A4").count(b"/Type /Page\n") > 5
    assert page.evaluate("folded") == 0 and page.locator("details.more[open]").count() == 0
    drawn = "all => all.map(one => one.querySelectorAll('svg.main-svg').length)"
    assert all(page.eval_on_selector_all(".plotly-graph-div", drawn))
    # the paper is narrower, and nothing is told to draw again
    page.evaluate("drawAll()")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 994})
    widths = page.eval_on_selector_all(
        ".js-plotly-plot",
        "all => all.map(one => [one.getBoundingClientRect().width, one.querySelector('svg.main-svg').getBoundingClientRect().width])",
    )
    assert widths and all(abs(room - drawn) <= 1 for room, drawn in widths)
    page.close()


def test_the_demo_shows_the_product_on_few_screens(browser: Any, demo: Warehouse):
    """A drive to replace on the first screen, with its chart; an open alert; a decision that was carried out, and what came of it."""
    # that of the demo itself, from before other tests' decisions
    (path,) = (demo.root / "reports").glob("*.html")
    numbers = {name: answer["rows"] for name, answer in json.loads(path.with_suffix(".json").read_text())["numbers"].items()}
    first = numbers["actions"][0]
    assert (first["action"], first["verdict"], first["needs_person"]) == ("replace", "replace", True)
    assert [row["drive_id"] for row in numbers["actions"] if row["action"] == "inspect" and row["has_open_alert"]]
    (done,) = [row for row in numbers["decisions"] if row["state"] == "replaced"]
    assert done["ticket"] == "OPS-4711" and done["tail_hour_ratio_after"] < done["tail_hour_ratio_before"] / 2
    assert [row for row in numbers["verdict_backtest"] if row["replace_rule"] == "lasting" and row["paid_ratio"] > 0.5]
    (quarter,) = numbers["candidate_quarter"]
    assert quarter["replace_paid_count"] > 0
    for width, height, screens in ((1400, 900, 8), (390, 844, 20)):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-tables=ready]")
        assert page.evaluate("document.documentElement.scrollHeight") <= screens * height
        box = page.locator("#actions tbody tr").first.bounding_box()
        assert box is not None and box["y"] < height - 100
        page.locator("#actions tbody th a").first.click()
        page.wait_for_selector("#drive-1 .main-svg")
        assert first["drive_id"] in page.locator("#drive-1 figcaption").inner_text()
        page.close()
    words = Page(path).words
    assert f"{quarter['replace_paid_count']:,} of {quarter['replace_count']:,} replace" in words
    assert not re.search(r"\b(T1|T2|RI|ZI|kappa|silent)\b", words), "words of the paper, or of the marts"


def test_hovering_shows_numerator_and_denominator(browser: Any, eventful_report: Path):
    page, troubles = opened(browser, eventful_report)
    figure = page.locator("#figure-trend-tail_hours .nsewdrag")
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.74, box["y"] + box["height"] * 0.6)
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.6)
    page.wait_for_selector("#figure-trend-tail_hours .hoverlayer .legendtext")
    shown = " ".join(page.locator("#figure-trend-tail_hours .hoverlayer").all_text_contents())
    assert re.search(r"%: [\d,]+ tail hours of [\d,]+ RAID-hours", shown)
    assert troubles == []
    page.context.close()
