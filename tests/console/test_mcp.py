"""`drivetail mcp`: what a client of MCP's own SDK finds over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from console.ask import ROWS
from drivetail.ask.candidates import list_candidates
from drivetail.ask.sql import run_query
from drivetail.tell.alerts import open_alerts
from engine.build import publish_store
from engine.warehouse import PROJECT, Warehouse
from tests.golden import copied
from tests.proof.support import command, environment, refusing
from tests.report.conftest import demo_fleet
from tests.report.test_cookbook import QUESTIONS

DRIVE = "D00000002A"


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return copied(demo_fleet(), tmp_path_factory.mktemp("mcp") / "warehouse")


def in_session(warehouse: Warehouse, talk: Callable[[Client], Any]) -> Any:
    """The result of a talk with a server of its own."""
    program, *arguments = command("mcp", "-w", warehouse.root)

    async def run() -> Any:
        server = StdioServerParameters(command=program, args=arguments, env=environment())
        async with Client(stdio_client(server), read_timeout_seconds=120) as client:
            return await talk(client)

    with ThreadPoolExecutor(1) as thread:  # the browser's tests leave a loop that runs in this one
        return thread.submit(asyncio.run, run()).result()


def answers(warehouse: Warehouse, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Answers of tools, one after the other: the content, or the words of an error."""

    async def talk(client: Client) -> list[Any]:
        found = [await client.call_tool(name, arguments) for name, arguments in calls]
        assert all(each.is_error or json.loads(each.content[0].text) == each.structured_content for each in found)
        return [each.content[0].text if each.is_error else each.structured_content for each in found]

    return in_session(warehouse, talk)


def records(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def same(value: Any) -> Any:
    """A value, whether JSON has it as a number or, as `drivetail sql` prints a decimal, as its text."""
    return float(value) if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value) else value


def test_a_client_lists_tools_that_only_read_and_say_what_they_are_for(warehouse: Warehouse) -> None:
    tools = in_session(warehouse, lambda client: client.list_tools()).tools
    assert {tool.name for tool in tools} == {"what_to_do", "candidates", "explain", "relations", "cookbook", "ask"}
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools)
    page = (PROJECT / "docs/agents.md").read_text(encoding="utf-8")
    assert [tool.name for tool in tools if f"`{tool.name}`" not in page] == []


@pytest.mark.proof
def test_each_question_of_the_cookbook_is_answered_as_by_drivetail_sql(warehouse: Warehouse) -> None:
    found = answers(warehouse, *(("ask", {"sql": sql, "limit": ROWS}) for sql in QUESTIONS.values()))
    for (question, sql), answer in zip(QUESTIONS.items(), found, strict=True):
        assert not isinstance(answer, str) and not answer["is_cut"], (question, answer)
        expected = json.loads(run_query(warehouse, sql, "json", None, 1))
        assert answer["columns"] == list(expected[0]), question
        rows = [[same(value) for value in row.values()] for row in expected]
        assert [[same(value) for value in row] for row in answer["rows"]] == rows, question


def test_tools_answer_without_sql_what_the_cookbook_asks_in_it(warehouse: Warehouse) -> None:
    hour, worth, chronic = (json.loads(run_query(warehouse, QUESTIONS[name], "json", None, 1)) for name in by_number(10, 24, 8))
    (slow,) = json.loads(run_query(warehouse, "select drive_id from marts.fct_slowdown_intervals where degree = 'slow' "
                                   "order by interval_hours desc, drive_id limit 1", "json", None, 1))  # fmt: skip
    explained, listed, actions = answers(
        warehouse, ("explain", {"drive": slow["drive_id"], "hour": hour[3]["hour_utc"]}), ("candidates", {}), ("what_to_do", {})
    )
    (row,) = records(explained["rows"]["drive_hour"])
    assert round(row["slowdown"], 2) == hour[3]["slowdown"] and row["io_count"] == hour[3]["io_count"]
    assert "drive_hours" in explained["text"] and "row" in explained["text"], "down to file and row"
    assert [row["drive_id"] for row in records(listed)][:10] == [row["drive_id"] for row in worth]
    assert (
        {row["drive_id"] for row in chronic}
        >= {row["subject_id"] for row in records(actions["alerts"]) if row["reason"] == "chronic"}
        != set()
    )


def by_number(*numbers: int) -> list[str]:
    return [next(name for name in QUESTIONS if name.startswith(f"{number}. ")) for number in numbers]


def test_lists_are_those_of_the_commands(warehouse: Warehouse) -> None:
    todo, listed, cut, drive, tables, one, questions = answers(
        warehouse, ("what_to_do", {}), ("candidates", {"include_all": True}), ("candidates", {"limit": 1}), ("explain", {"drive": DRIVE}),
        ("relations", {}), ("relations", {"name": "marts.fct_raid_hours"}), ("cookbook", {}),
    )  # fmt: skip
    assert [row["alert_id"] for row in records(todo["alerts"])] == [alert.alert_id for alert in open_alerts(warehouse)]
    assert [row["action"] for row in records(todo["actions"]) if row["drive_id"] == DRIVE]
    assert [row["drive_id"] for row in records(listed)] == [row["drive_id"] for row in list_candidates(warehouse, is_all=True)]
    assert len(cut["rows"]) == cut["limit"] == 1 and cut["is_cut"]
    assert records(drive["rows"]["drive"])[0]["drive_id"] == DRIVE and drive["text"].startswith("Drive ")
    meanings = {row["relation"]: row["meaning"] for row in records(tables)}
    assert meanings["marts.drive_actions"] and not any(name.startswith(("raw.", "intermediate.", "plan.")) for name in meanings)
    assert all(meanings[name] for name in meanings if name.startswith("marts."))
    assert one["grain"] == "raid_group_id, hour_utc" and all(row["meaning"] for row in records(one))
    assert {row["question"] for row in records(questions)} == {name for name in QUESTIONS if not name.endswith("'")}


HOSTILE = {
    "drop table marts.dim_drives": "give one query that reads",
    "copy (select 1) to '/tmp/stolen.csv'": "give one query that reads",
    "select 1; select 2": "give one query that reads",
    "from read_csv('/etc/passwd')": "is not for questions",
    "from '/etc/passwd'": "is not for questions",
    "select * from marts.dim_drive": "Did you mean",
    "select repeat('x', 1000000000) from range(9)": "memory",
    "select " + "(" * 5000 + "1" + ")" * 5000: "",
    "select map {date '2026-01-01': 1}": "cast that column to varchar",
    "select repeat('x', 500000)": "more than 200,000",
    "select count(*) from range(1000000000000) as a, range(1000000) as b": "stopped after 20 s",
}
"""A question -> words of its refusal."""


def test_a_hostile_question_is_refused_in_words_and_the_server_goes_on(warehouse: Warehouse) -> None:
    before = warehouse.published.read_bytes()
    alive = ("ask", {"sql": "select 'nan'::double as a, 1.5 as b"})
    found = answers(warehouse, *(call for sql in HOSTILE for call in (("ask", {"sql": sql}), alive)))
    for (sql, words), said in zip(HOSTILE.items(), found[::2], strict=True):
        assert isinstance(said, str) and words in said and "Traceback" not in said, (sql[:80], said)
    assert all(each["rows"] == [[None, 1.5]] for each in found[1::2])
    assert warehouse.published.read_bytes() == before


def test_a_fault_is_an_error_of_the_tool_in_words(tmp_path: Path, warehouse: Warehouse) -> None:
    nothing = answers(
        Warehouse(tmp_path), *((name, {}) for name in ("what_to_do", "candidates", "relations")), ("ask", {"sql": "select 1"})
    )
    assert all("no such warehouse; nothing has landed there" in said for said in nothing)
    wrong = answers(
        warehouse, ("explain", {"drive": "nobody"}), ("explain", {"drive": DRIVE, "hour": "noon"}), ("relations", {"name": "marts.none"})
    )
    for said, words in zip(wrong, ("no record of the publication names this drive", "noon", "no such relation"), strict=True):
        assert words in said


def test_a_session_sees_what_is_published_while_it_lasts(tmp_path: Path) -> None:
    warehouse = copied(demo_fleet(), tmp_path / "warehouse")
    query = {"sql": "select publication_id from marts.publication"}

    async def talk(client: Client) -> list[Any]:
        first = await client.call_tool("ask", query)
        published = await asyncio.to_thread(publish_store, warehouse)
        second, listed = await client.call_tool("ask", query), await client.call_tool("relations", {})
        seen = [each.structured_content["rows"][0][0] for each in (first, second)]
        return [published, *seen, listed.structured_content["publication"]["publication_id"]]

    published, first, second, listed = in_session(warehouse, talk)
    assert first != second == listed == published.publication_id


def test_without_the_extra_one_line_names_it(tmp_path: Path) -> None:
    path = os.pathsep.join([str(refusing(("mcp",), tmp_path / "missing")), environment()["PYTHONPATH"]])
    done = subprocess.run(command("mcp", "-w", tmp_path), env={**environment(), "PYTHONPATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("drivetail: mcp is not installed; install drivetail[mcp]: `")


def test_the_configuration_of_a_client_in_the_docs_names_this_command() -> None:
    text = (PROJECT / "docs/agents.md").read_text(encoding="utf-8")
    server = json.loads(text.partition("```json\n")[2].partition("```")[0])["mcpServers"]["drivetail"]
    assert Path(server["command"]).name == "drivetail" and server["args"][0] == "mcp"
    done = subprocess.run([sys.executable, "-m", "drivetail", *server["args"], "--help"], capture_output=True, text=True, cwd=PROJECT)
    assert done.returncode == 0
