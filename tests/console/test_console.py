"""The console: what pages show is what the marts hold, who may ask, what a question can do, what a decision leaves."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import httpx
import pytest

from console.ask import SECONDS
from console.measures import measured_sql
from console.pages import fleet, stated
from console.published import HOURS, Publications, Published
from console.serve import access_of, serve
from engine.build import publish_store
from engine.read import QueryError, open_published
from engine.warehouse import Warehouse
from ingest.raw.register import Register
from tests.console.conftest import TOKEN, Served, served
from tests.golden import copied, golden
from tests.report.conftest import build_eventful, demo_fleet

DRIVE, GROUP, HOST = "D00000002A", "disk-g000000", "pdx2-disk-h00000"
ALL_PAGES = [
    "/", f"/drive?id={DRIVE}", f"/hour?id={DRIVE}&at=2026-01-29 14:00", f"/group?id={GROUP}", f"/host?id={HOST}",
    f"/enclosure?id={HOST}/{HOST}-e0", "/model", "/model?id=CD-1000N&firmware=D304", "/alerts", "/candidates", "/decisions", "/reports",
    "/study", "/lab", "/tables", "/table?name=marts.dim_drives", "/search?q=g00000", f"/drive?id={HOST}/2", "/ask",
    "/ask?sql=select 1 as a, 2 as b&as=chart",
]  # fmt: skip


def value(warehouse: Warehouse, sql: str) -> object:
    with open_published(warehouse) as connection:
        return connection.execute(sql).fetchall()[0][0]


def form_token(page: str) -> str:
    return re.findall(r'name="form_token" value="(\w+)"', page)[0]


def decided(warehouse: Warehouse) -> list[dict[str, object]]:
    return Register(warehouse.raw, "decisions").read()


@pytest.mark.parametrize("page", ALL_PAGES)
def test_a_page_is_shown_with_a_policy_against_foreign_scripts(client: httpx.Client, page: str):
    answer = client.get(page)
    assert answer.status_code == 200, answer.text
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert not re.search(r"<script(?! src=\"/static/| type=\"application/json\")", answer.text)
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", answer.text)


def test_the_fleet_shows_whom_the_marts_name(console: Served, client: httpx.Client):
    page = client.get("/").text
    count = value(console.warehouse, "select count(*) from marts.drive_actions where needs_person")
    assert f"{count} drives need attention." in page


def test_the_fleet_begins_with_groups_that_are_slow_as_a_whole(tmp_path: Path):
    """No drive of such a group stands out, so it is on no list of drives."""
    warehouse = copied(demo_fleet(), tmp_path / "warehouse")
    group = value(warehouse, "select min(raid_group_id) from marts.dim_raid_groups")
    with duckdb.connect(str(warehouse.published)) as connection:
        query = """
            insert into marts.fct_slow_alerts by name
            select * replace ('raid_group' as subject_type, ? as subject_id, 'whole_group' as reason, null as cleared_at, null as part_of)
            from marts.fct_slow_alerts limit 1
        """
        connection.execute("delete from marts.fct_slow_alerts where reason = 'whole_group'")
    before = fleet(Published(warehouse, warehouse.published), {})
    with duckdb.connect(str(warehouse.published)) as connection:
        connection.execute(query, [group])
    page = fleet(Published(warehouse, warehouse.published), {})
    assert "Slow as a whole" not in str(before.answer) and not page.is_calm
    assert re.search(rf'Slow as a whole: <a href="/group\?id={group}">[^<]+</a>\.$', str(page.answer))


SQUARE = re.compile(r'<a class="([\w-]+)" href="/drive\?id=([^"]+)" title="([^"]+)"')


def squares(page: str) -> list[tuple[str, str, str]]:
    """The drives that the map draws: state, drive, words."""
    return [(state.replace("-", " "), drive, html.unescape(said)) for state, drive, said in SQUARE.findall(page)]


def test_the_map_has_every_drive_once_with_its_state_in_words(console: Served, client: httpx.Client):
    page = client.get("/").text
    drawn = squares(page)
    with open_published(console.warehouse) as connection:
        due = set(connection.execute("select action, drive_id from marts.drive_actions where needs_person").fetchall())
        days = dict(connection.execute("select drive_id, slow_days_14d from marts.replacement_candidates").fetchall())
        stays = {drive for (drive,) in connection.execute("select drive_id from marts.dim_drives where left_at is null").fetchall()}
    assert len(drawn) == len({drive for _, drive, _ in drawn}) and {drive for _, drive, _ in drawn} <= stays
    assert {(state, drive) for state, drive, _ in drawn if state in ("replace", "check path", "inspect")} == due != set()
    assert all(state in said for state, _, said in drawn)
    slow = {drive: said for _, drive, said in drawn if "of 14 days" in said}
    assert slow and all(f"slow on {days[drive]} of 14 days" in said for drive, said in slow.items())
    told = re.findall(r'href="/drive\?id=[^"]+" title="[^"]+"(?: style="[^"]+")? aria-label="([^"]+)"', page)
    assert set(told) == {said for state, _, said in drawn if state not in ("well", "not judged") or "of 14" in said or "silent" in said}


def test_the_list_of_what_to_do_names_only_drives_that_need_somebody(console: Served, client: httpx.Client):
    rows = client.get("/", params={"download": "actions.json"}).json()
    expected = value(console.warehouse, "select list(drive_id order by drive_id) from marts.drive_actions where needs_person")
    assert sorted(row["drive_id"] for row in rows) == expected


def test_a_judged_drive_of_no_known_kind_is_not_among_the_unjudged(console: Served, client: httpx.Client):
    apart = client.get("/", params={"download": "unknown.json"}).json()
    unjudged = client.get("/", params={"download": "unjudged.json"}).json()
    judged = "select max(slowdown_hours) > 0 from status.fct_recent_drives where drive_id = '{}'"
    assert apart and all(value(console.warehouse, judged.format(row["drives"])) for row in apart)
    assert unjudged and "kind unknown" not in {row["reason"] for row in unjudged}


@pytest.mark.parametrize("noted", [0.005, 0.3])
def test_a_map_of_50000_drives_is_quick_and_small(tmp_path: Path, noted: float):
    warehouse = copied(demo_fleet(), tmp_path / "warehouse")
    with duckdb.connect(str(warehouse.published)) as connection:
        connection.execute(
            f"""
            drop view status.fct_drive_states;
            create table status.states as
            select
                'WD-WX' || drive as drive_id, 'slot ' || drive % 24 as name, 'fra3-rack' || drive // 240 || '-host' || drive // 24 as host,
                null::varchar as enclosure, 24 as place_drives, drive // 24 + 1 as place_rank,
                if(drive < {noted} * 50000, 'watch', 'well') as state, null::varchar as unjudged_reason, drive % 15 as slow_days_14d
            from range(50000) as drives(drive);
            create view status.fct_drive_states as
            select *, host as place, state = 'watch' as is_noted, count(*) over (partition by state) as state_drives, 0 as reason_drives
            from status.states
            """
        )
    with served(warehouse) as console, console.client() as client:
        client.get("/alerts")
        began = time.monotonic()
        page = client.get("/").text
        assert time.monotonic() - began < 1
    assert len(page) < 1_500_000
    places, tiles = 50000 * noted / 24, len(re.findall('<li><p><a href="/host', page))
    assert tiles == math.ceil(min(places, 2500 / 24)) and f"{2084 - tiles:,} more places with {50000 - 24 * tiles:,} drives" in page
    assert len(squares(page)) == min(50000 * noted, 2500) and ("no drive there has a state" in page) == (noted < 0.05)


def test_study_and_lab_are_in_the_bar_where_there_is_one(client: httpx.Client, tmp_path: Path):
    bar = 'aria-current="page">Fleet</a></li>(.*)<li class="search">'

    def rooms(reader: httpx.Client) -> set[str]:
        return set(re.findall(r'href="(/\w*)"', re.findall(bar, reader.get("/").text, re.DOTALL)[0]))

    without = rooms(client)
    assert {"/alerts", "/tables"} <= without and not {"/study", "/lab"} & without
    warehouse = copied(Warehouse(golden("eventful", build_eventful) / "warehouse"), tmp_path / "warehouse")
    with duckdb.connect(str(warehouse.published)) as connection:
        connection.execute("create or replace view lab.dim_experiments as select 'e1' as experiment_id")
    with served(warehouse) as console, console.client() as reader:
        assert rooms(reader) - without == {"/study", "/lab"}


def test_every_query_of_a_page_can_be_asked_and_gives_its_rows(client: httpx.Client):
    links = {html.unescape(link) for page in ALL_PAGES[:6] for link in re.findall(r'href="(/ask\?sql=[^"]+)">SQL', client.get(page).text)}
    assert len(links) > 25
    for link in links:
        assert client.get(link).status_code == 200, link


def test_a_table_sorts_filters_turns_pages_and_downloads_its_rows(console: Served, client: httpx.Client):
    chosen = {"name": "marts.dim_drives", "rows.q": GROUP, "rows.sort": "-drive_id"}
    page = client.get("/table", params=chosen).text
    rows = list(csv.DictReader(io.StringIO(client.get("/table", params={**chosen, "download": "rows.csv"}).text)))
    packed = client.get("/table", params={**chosen, "download": "rows.parquet"}).content
    listed = client.get("/table", params={**chosen, "download": "rows.json"})
    second = client.get("/table", params={"name": "marts.dim_drives", "rows.page": "2"}).text
    expected = value(
        console.warehouse, f"select list(drive_id order by drive_id desc) from marts.dim_drives where current_raid_group_id = '{GROUP}'"
    )
    assert [row["drive_id"] for row in rows] == expected
    assert [page.index(f"id={drive}") for drive in expected] == sorted(page.index(f"id={drive}") for drive in expected)
    assert packed[:4] == b"PAR1"
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in listed.json()] == rows
    assert listed.headers["content-type"] == "application/json" and 'filename="rows.json"' in listed.headers["content-disposition"]
    assert "Earlier rows" in second


@pytest.mark.parametrize(
    ("sought", "page"),
    [(DRIVE, "/drive"), (f"{HOST}/2", "/drive"), (GROUP, "/group"), (HOST, "/host"), ("CD-1000N", "/model"), ("g00000", "/search")],
)
def test_a_search_leads_to_what_is_named_in_full(client: httpx.Client, sought: str, page: str):
    assert client.get("/search", params={"q": sought}).url.path == page


@pytest.mark.parametrize("name", ["page", "shown", "query", "self", "name", "id", "download"])
def test_a_parameter_of_any_name_breaks_no_page(client: httpx.Client, name: str):
    for page in ("/", f"/drive?id={DRIVE}", "/table?name=marts.dim_drives", "/search?q=a", "/decisions"):
        assert client.get(f"{page}{'&' if '?' in page else '?'}{name}=z").status_code < 500


@pytest.mark.parametrize(
    "page",
    ["/drive?id=nobody", "/group?id=x", "/alert?id=x", "/drive?id=D00000002A&since=x", "/hour?id=D00000002A&at=x", "/table?name=raw.x"],
)
def test_a_page_of_nothing_says_what_to_do(client: httpx.Client, page: str):
    answer = client.get(page)
    assert answer.status_code == 422
    (said,) = re.findall(r'role="alert">(.*?)</p>', answer.text)
    assert "drivetail" not in said, "nobody types a command into a browser"


def test_a_search_without_a_result_suggests_names_and_has_no_empty_tables(client: httpx.Client):
    page = client.get("/search", params={"q": "D00000002B"}).text
    assert "did you mean" in page and DRIVE in page
    assert "download" not in page and "<section" not in page.partition("<main")[2]
    assert "download" in client.get("/search", params={"q": "D0000000"}).text


def test_a_calm_answer_has_no_bar_of_a_warning(console: Served, client: httpx.Client):
    well = value(console.warehouse, "select drive_id from status.fct_drive_states where state = 'well' order by drive_id limit 1")
    assert '<div class="digest calm">' in client.get(f"/drive?id={well}").text
    due = value(console.warehouse, "select drive_id from marts.drive_actions where needs_person limit 1")
    assert '<div class="digest">' in client.get(f"/drive?id={due}").text


def test_a_drive_that_is_not_judged_says_so_on_its_page_too(client: httpx.Client):
    spared = [(drive, said) for state, drive, said in squares(client.get("/").text) if state == "not judged"]
    assert spared
    for drive, said in spared[:3]:
        assert f"Not judged, {said.partition('not judged, ')[2]}:" in client.get(f"/drive?id={drive}").text


def test_the_page_of_a_drive_that_left_draws_its_last_week(console: Served, client: httpx.Client):
    gone = "marts.dim_drives where left_at < (select last_hour_utc - interval 8 day from marts.publication)"
    left = value(console.warehouse, f"select drive_id from {gone} and last_hour_utc is not null order by drive_id limit 1")
    page = client.get(f"/drive?id={left}").text
    assert "Its hours against its peers" in page and "Nothing to draw" not in page
    assert "Nothing to draw" in client.get(f"/drive?id={left}&since=2001-01-01&until=2001-01-02").text


def test_long_names_of_places_are_not_cut_off_or_repeated(console: Served, client: httpx.Client):
    left = value(console.warehouse, "select strftime(left_at, '%Y-%m-%d') from marts.dim_drives where left_at is not null limit 1")
    assert f'<span class="under">until {left}, ' in client.get("/decisions").text
    incident = value(
        console.warehouse, "select incident_id from marts.drive_actions where incident_id like 'enclosure%' and needs_person limit 1"
    )
    _, _, enclosure = str(incident).rpartition("/")
    assert re.search(rf'<a class="id" href="/enclosure[^"]+">enclosure {enclosure}</a>', client.get("/").text)


def test_a_drive_has_one_word_on_every_list(console: Served, client: httpx.Client):
    drawn = {drive: state for state, drive, _ in squares(client.get("/").text)}
    lists = (("/candidates", "candidates"), ("/", "actions"))
    rows = [row for page, name in lists for row in client.get(page, params={"download": f"{name}.json"}).json()]
    assert len(rows) > 10 and all(row["action"] == drawn[row["drive_id"]] for row in rows)


def test_the_measures_are_those_of_the_marts(console: Served):
    with open_published(console.warehouse) as connection:
        shown = {row[0]: row[1:3] for row in connection.execute(measured_sql()).fetchall()}
        expected = connection.execute(
            "with raid as (select kind, 1000.0 * count(*) filter (is_tail_hour) / count(tail_1) as tails "
            "from marts.fct_raid_hours group by kind), "
            "drives as (select groups.kind, count(*) filter (is_slow) / count(slowdown) as slow "
            "from marts.fct_drive_hours join marts.dim_raid_groups as groups using (raid_group_id) group by groups.kind) "
            "select kind, tails, slow from raid join drives using (kind)"
        ).fetchall()
    assert {kind: shown[kind] for kind, *_ in expected} == {kind: pytest.approx(tuple(rest)) for kind, *rest in expected}


@pytest.mark.proof
def test_a_reader_follows_publications_and_no_answer_is_torn(console: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("console.published.SECONDS", 120.0)  # however busy the machine is
    errors: list[str] = []
    stop, publications = threading.Event(), Publications(console.warehouse)
    first = weakref.ref(publications.current)

    def read() -> None:
        with console.client() as client:
            while not stop.is_set():
                answer = client.get(f"/drive?id={DRIVE}")
                if answer.status_code != 200:
                    errors.append(re.findall(r'role="alert">(.*?)</p>', answer.text)[0])

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(read)
        for _ in range(2):
            publication = publish_store(console.warehouse)
            began = time.monotonic()
            with console.client() as client:
                while publication.publication_id not in client.get("/").text:
                    assert time.monotonic() - began < 60
        stop.set()
    assert errors == []
    assert publications.refresh() is publications.current and first() is None, "closed when nobody reads it any more"


def test_hours_in_memory_and_those_before_them_are_the_marts(console: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("console.published.HELD_DAYS", 3)
    with Publications(console.warehouse).current.cursor() as cursor:
        marts, held = f"(select {HOURS} from marts.fct_drive_hours)", "(select * from held.drive_hours)"
        counts = f"select (select count(*) from {marts}), (select count(*) from {held}), (select count(*) from ({marts} except all {held}))"
        expected, found, missing = cursor.execute(counts).fetchall()[0]
        (kept,) = cursor.execute("select count(distinct date_trunc('day', hour_utc)) from held.last_days").fetchall()[0]
    assert (found, missing, kept) == (expected, 0, 3)


def test_nobody_is_let_in_without_the_token(console: Served):
    with console.client(signed_in=False) as client:
        for page in ALL_PAGES:
            assert client.get(page).status_code == 401
        assert client.get("/", params={"token": TOKEN[:-1]}).status_code == 401
        assert client.post("/decide", data={"drive": DRIVE, "verdict": "dismiss", "note": "x"}).status_code == 401


def test_the_token_leaves_the_address_and_the_cookie_does_not_hold_it(console: Served):
    with httpx.Client(base_url=console.address) as client:
        answer = client.get(f"/drive?id={DRIVE}&token={TOKEN}")
        for path in ("//evil.example/?token=", "/\\evil.example?token="):
            sent = client.get(f"{console.address}{path}{TOKEN}").headers.get("location", "/")
            assert not sent.startswith(("//", "/\\", "http")), "another server"
    assert (answer.status_code, answer.headers["location"]) == (303, f"/drive?id={DRIVE}")
    assert "HttpOnly" in answer.headers["set-cookie"] and TOKEN not in answer.headers["set-cookie"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_another_origin_or_host_name_is_refused(console: Served, client: httpx.Client, origin: str):
    token = form_token(client.get(f"/drive?id={DRIVE}").text)
    form = {"form_token": token, "drive": DRIVE, "verdict": "dismiss", "note": "forged"}
    assert client.post("/decide", data=form, headers={"origin": origin}).status_code == 403
    assert client.post("/decide", data={**form, "form_token": "0"}).status_code == 422
    assert client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert not any(record["note"] == "forged" for record in decided(console.warehouse))


def test_a_proxy_names_the_user_who_decides(console: Served):
    with served(console.warehouse, user_header="X-Remote-User") as behind, behind.client(signed_in=False) as client:
        assert client.get("/").status_code == 403
        client.headers["x-remote-user"] = "bob"
        page = client.get(f"/drive?id={DRIVE}").text
        form = {"form_token": form_token(page), "drive": DRIVE, "verdict": "watch", "note": "seen by bob", "back": f"/drive?id={DRIVE}"}
        assert client.post("/decide", data={**form, "form_token": behind.access.signed("form ada")}).status_code == 422
        assert "watch recorded for 1 drive, by bob" in client.post("/decide", data=form).text
    assert decided(console.warehouse)[-1]["by"] == "bob"


def test_a_header_is_not_trusted_where_others_reach_the_server(console: Served, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(QueryError, match="--user-header"):
        access_of(console.warehouse, "0.0.0.0", 8090, user_header="X-Remote-User")
    monkeypatch.setenv("DRIVETAIL_CONSOLE_TOKEN", "short")
    with pytest.raises(QueryError, match="fewer than 16"):
        access_of(console.warehouse, "127.0.0.1", 8090)


def test_no_address_is_shown_where_another_program_listens(console: Served):
    taken, said = httpx.URL(console.address).port, list[str]()
    assert taken
    with pytest.raises(QueryError, match=f"--port {taken}: Address already in use; give another$"):
        serve(console.warehouse, "127.0.0.1", taken, said.append)
    assert said == []


def test_decisions_on_several_drives_are_recorded_and_shown_at_once(console: Served, client: httpx.Client):
    drives = ["D00000102A", "D00000110A"]
    before = len(decided(console.warehouse))
    token = form_token(client.get("/candidates").text)
    form = {"form_token": token, "drive": drives, "verdict": "replace", "note": "n", "ticket": "OPS-1", "back": "/candidates?x=1#a"}
    page = client.post("/decide", data=form)
    assert "replace recorded for 2 drives, by ada" in page.text and page.url.path == "/candidates"
    for drive in drives:
        assert "ada decided replace" in client.get(f"/drive?id={drive}").text
    undone = client.post("/decide", data={**form, "verdict": "watch", "note": "undone", "back": "//evil.example"})
    assert undone.url.host == "127.0.0.1"
    assert "ada decided watch" in client.get(f"/drive?id={drives[0]}").text
    added = decided(console.warehouse)[before:]
    assert [(record["drive_id"], record["verdict"]) for record in added] == [
        (drive, verdict) for verdict in ("replace", "watch") for drive in drives
    ]


def test_replacing_a_drive_without_a_slow_hour_asks_again(console: Served, client: httpx.Client):
    with open_published(console.warehouse) as connection:
        query = """
            select min(drive_id) from marts.dim_drives
            where drive_id not in (select drive_id from marts.fct_drive_slowness where slow_hours > 0)
                and drive_id not in (select subject_id from marts.fct_slow_alerts)
        """
        ((well,),) = connection.execute(query).fetchall()
    page = client.get(f"/drive?id={well}").text
    form = {"form_token": form_token(page), "drive": well, "verdict": "replace", "note": "n"}
    assert 'name="sure"' in page and client.post("/decide", data=form).status_code == 422
    assert client.post("/decide", data={**form, "sure": "yes"}).status_code == 200
    assert decided(console.warehouse)[-1]["drive_id"] == well
    assert client.post("/decide", data={**form, "verdict": "retract"}).status_code == 200


def test_until_with_an_offset_is_stored_in_utc(console: Served, client: httpx.Client):
    form = {"form_token": form_token(client.get(f"/drive?id={DRIVE}").text), "drive": DRIVE, "verdict": "dismiss", "note": "n"}
    assert client.post("/decide", data={**form, "until": "2997-01-01T00:00+14:00"}).status_code == 200
    assert decided(console.warehouse)[-1]["until"] == "2996-12-31T10:00:00"
    assert client.post("/decide", data={**form, "until": "9999-12-31T23:59-05:00"}).status_code == 422
    assert client.get("/drive", params={"id": DRIVE, "until": "0001-01-01T00:00+14:00"}).status_code == 422


@pytest.mark.parametrize(
    "wrong", [{"drive": "nobody"}, {"note": " "}, {"verdict": "delete"}, {"until": "2020-01-01"}, {"until": "soon"}, {"drive": ""}]
)
def test_a_wrong_decision_is_refused_whole(console: Served, client: httpx.Client, wrong: dict[str, str]):
    before = decided(console.warehouse)
    form = {"form_token": form_token(client.get(f"/drive?id={DRIVE}").text), "drive": DRIVE, "verdict": "watch", "note": "n"}
    assert client.post("/decide", data={**form, **wrong}).status_code == 422
    assert decided(console.warehouse) == before


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('/etc/passwd')", "select * from '/etc/passwd'", "from read_csv('/proc/self/environ')",
        "select * from glob('/*')",
        "copy (select 1) to '/tmp/drivetail_stolen'", "attach '/tmp/drivetail_stolen.db'", "install httpfs", "load httpfs",
        "set memory_limit = '9GB'", "create table x (i int)", "pragma database_list", "select 1; select 2", "drop view marts.publication",
        "select * from read_parquet('https://localhost/x')", "export database '/tmp/drivetail_stolen'", "use memory", "detach warehouse",
        "select * from query('copy (select 1) to ''/tmp/drivetail_stolen''')", "explain analyze create table memory.main.x as select 1",
        "with x as (select * from read_blob('{root}/drivetail.log')) from x", "from sniff_csv('/etc/passwd')", "checkpoint", "vacuum",
        "select * from '{root}/raw/../warehouse.duckdb'", "from read_text('{root}/store/../drivetail.log')", "call pragma_version()",
        "from read_text('{root}/raw/deliveries/*/delivery.json')", "from '{root}/raw/decisions.jsonl'", "explain from glob('{root}/raw/*')",
        "from query('from read_text(''{root}/raw/decisions.jsonl'')')",
        "select (select max(content) from read_text('{root}/raw/decisions.jsonl'))",
        # whose words change where they are looked at without their `explain`
        "select 1 --explain \n from read_text('{root}/raw/decisions.jsonl')",
        "/* */ from read_text('{root}/raw/decisions.jsonl') /* */ explain select 1",
        "/* /* */ explain */ from read_text('{root}/raw/decisions.jsonl')",
        "explain /* /* */ explain */ analyze from read_text('{root}/raw/decisions.jsonl')",
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"download": "csv"}])
def test_a_question_reads_and_writes_nothing_else(console: Served, client: httpx.Client, sql: str, more: dict[str, str]):
    answer = client.get("/ask", params={"sql": sql.replace("{root}", str(console.warehouse.root)), **more})
    assert answer.status_code == 422, answer.text[:500]
    assert not list(Path("/tmp").glob("drivetail_stolen*"))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select 'nan'::double as a, 'NaN' as b, [1, 'inf'::double] as c", [{"a": None, "b": "NaN", "c": [1, None]}]),
        ("select range as a from range(5000) order by a", [{"a": number} for number in range(5000)]),
        ("select 1 as a where false", []),
    ],
)  # fmt: skip
def test_json_has_every_row_and_null_for_what_is_no_number(client: httpx.Client, sql: str, rows: list[dict[str, object]]):
    text = client.get("/ask", params={"sql": sql, "download": "json"}).text
    assert json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")) == rows


def test_settings_of_a_question_hold_for_no_page(client: httpx.Client):
    assert client.get("/ask", params={"sql": "select current_setting('enable_external_access') as a"}).text.count(">no<") == 1
    assert client.get("/ask", params={"sql": "select getenv('PATH')"}).status_code == 422
    assert client.get(f"/hour?id={DRIVE}&at=2026-01-29 14:00").status_code == 200


def test_rows_memory_and_time_are_limited(console: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    many = client.get("/ask", params={"sql": "select range as a from range(5000)"}).text
    assert "1,000 rows, and more" in many
    for sql in (
        "select list(a.range || b.range) from range(100000) a, range(1000) b", "select len(range(300000000))",
        "select repeat('a', 2000000) from range(1000)",
    ):  # fmt: skip
        large = client.get("/ask", params={"sql": sql})
        assert client.get("/ask", params={"sql": sql, "download": "parquet"}).status_code == 422
        assert large.status_code == 422 and "memory" in large.text, sql
    monkeypatch.setattr("console.ask.SECONDS", 1.0)
    late = client.get("/ask", params={"sql": "select count(*) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3"})
    assert late.status_code == 422 and "stopped after" in late.text
    assert SECONDS <= 30


DEEP = {
    "with": "(with a as (" * 40,
    "join": "from " + "(" * 23 + "a" + " join a on 1)" * 23,
    "paragraph": "select " + "(select " * 40 + "1" + " from (" * 40,
    "list": "select " + "[x -> (" * 40,
    "select": "select * from " + "(select * from " * 1000 + "range(1)" + ")" * 1000,
}


@pytest.mark.parametrize("shape", DEEP)
@pytest.mark.parametrize("more", [{}, {"download": "csv"}])
def test_a_question_of_any_depth_stops_nobody_else(console: Served, monkeypatch: pytest.MonkeyPatch, shape: str, more: dict[str, str]):
    monkeypatch.setattr("console.ask.SECONDS", 2.0)
    with console.client() as asking, console.client() as reader, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(asking.get, "/ask", params={"sql": DEEP[shape], **more}, timeout=60)
        while not asked.done():
            assert reader.get("/static/console.css", timeout=30).status_code == 200
        assert asked.result().status_code == 422


def test_a_question_from_another_site_waits_for_its_reader(client: httpx.Client):
    foreign = client.get("/ask", params={"sql": "select 4711 as a"}, headers={"sec-fetch-site": "cross-site"}).text
    own = client.get("/ask", params={"sql": "select 4711 as a"}, headers={"sec-fetch-site": "same-origin"}).text
    assert "1 rows" in own and "1 rows" not in foreign and "select 4711" in foreign


@pytest.mark.proof
def test_fifty_readers_at_once_meet_no_error(console: Served):
    def read(number: int) -> list[str]:
        with console.client() as client:
            answers = [client.get(page) for page in ALL_PAGES[number % 5 :: 5]]
        return [f"{answer.url}: {answer.text}" for answer in answers if answer.status_code != 200]

    with ThreadPoolExecutor(50) as pool:
        assert [wrong for found in pool.map(read, range(50)) for wrong in found] == []


def test_a_page_stops_a_question_that_takes_too_long(client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("console.published.SECONDS", 0.01)
    answer = client.get("/table?name=marts.fct_drive_hours&rows.q=nobody")
    assert answer.status_code == 422 and "stopped after" in answer.text


def test_the_pages_name_relations_and_columns_that_are_there(console: Served):
    with open_published(console.warehouse) as connection:
        found = connection.execute("select distinct schema_name || '.' || table_name from duckdb_columns()").fetchall()
    named = {entry["of"] for entries in stated().values() for entry in entries if "of" in entry}
    assert {(name,) for name in named if not name.startswith("lab.")} <= set(found), "experiments need not be there"
