"""`drivetail --help` fits its line, and it and the settings list the sources of `ingest.sources`."""

from __future__ import annotations

import ast
import json
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.cli import Main, main
from drivetail.service.hour import steps
from drivetail.service.settings import load_settings, write_settings
from engine.warehouse import Warehouse
from ingest.sources import SOURCES, Asker, Reader, asker_of, reader_of
from tests.drivetail.conftest import Published, drivetail
from workbench.man import page

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", main.commands)
def test_a_summary_is_one_short_sentence_and_help_shows_no_format_string(name: str):
    summary = main.commands[name].get_short_help_str(limit=200)
    assert len(summary) <= 60 and summary.endswith("."), summary
    assert "%Y" not in drivetail(name, "--help").output


def test_every_command_with_a_table_prints_json(published: Published, settled: Warehouse, tmp_path: Path):
    root = published.warehouse.root
    for command in (["alerts"], ["candidates"], ["decisions"], ["study"], ["what-if", "--worst", "1"], ["sql", "from marts.dim_drives"]):
        # the study is computed and published first
        printed = drivetail(*command, "--format", "json", "-w", settled.root if command == ["study"] else root)
        assert printed.exit_code == 0 and isinstance(json.loads(printed.stdout), list), command
    assert json.loads(drivetail("status", "--format", "json", "-w", root).stdout)["landed"]["delivery_count"] == 2
    assert drivetail("status", "--json", "-w", root).exit_code == 0  # as in the first contract
    found = json.loads(drivetail("doctor", "bundle", published.bundle / "first", "--format", "json", "-w", tmp_path / "none").stdout)
    assert {"path", "check", "state", "said", "todo", "first_hour_utc"} == set(found[0])
    write_settings(Warehouse(tmp_path / "w"), tmp_path / "inbox", "bundle", datetime(2026, 1, 5))
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.csv").touch()
    (entry,) = json.loads(drivetail("inbox", "--format", "json", "-w", tmp_path / "w").stdout)
    assert (entry["inbox"], entry["path"]) == ("fleet", str(tmp_path / "inbox" / "a.csv"))


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_has_its_functions_and_a_line_of_help(source: str):
    module = reader_of(source)
    assert module.EXPECTED and callable(module.recognise)
    for protocol in (Asker, Reader) if asker_of(source) else (Reader,):
        for name in vars(protocol).keys() & {"land", "fetch", "forget"}:
            asked = list(signature(getattr(protocol, name)).parameters)[1:]
            assert list(signature(getattr(module, name)).parameters) == asked
    help_text = main.commands["ingest"].epilog
    assert help_text and SOURCES[source].help in help_text


@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "--days", 1, "--out", "FILE/x"), ("simulate", "--benchmark", "--out", "FILE/x"), ("demo", "--out", "FILE/x"),
        ("demo", "--out", "d", "--site", "FILE/x"), ("demo", "--out", "d", "--site", "OTHER"), ("docs", "--out", "FILE/x.html"),
    ],
)  # fmt: skip
def test_a_folder_that_cannot_be_used_is_one_line(command: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Commands that need no warehouse; before anything is made."""
    monkeypatch.chdir(tmp_path)
    Path("FILE").touch()
    Path("OTHER").mkdir()
    Path("OTHER", "mine").touch()
    done = drivetail(*command)
    assert done.exit_code == 1 and len(done.stderr.splitlines()) == 1, done.output
    assert ("FILE" in done.stderr or "mine" in done.stderr) and not Path("d").exists()


def test_ctrl_c_ends_a_command_with_130(tmp_path: Path):
    command = [sys.executable, "-m", "drivetail", "collect", "--every", "15m", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        while not (tmp_path / ".collect" / "diskstats").exists() and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (130, "drivetail: interrupted\n")


def test_ctrl_c_while_a_query_runs_ends_a_command_with_130():
    group = Main("drivetail")
    for name, error in (("ask", RuntimeError("Query interrupted")), ("fail", RuntimeError("Query")), ("loop", RecursionError())):

        @group.command(name)
        def fails(error: Exception = error) -> None:
            raise error

    done = CliRunner().invoke(group, ["ask"])
    assert (done.exit_code, done.stderr) == (130, "drivetail: interrupted\n")
    assert isinstance(CliRunner().invoke(group, ["fail"]).exception, RuntimeError)
    assert isinstance(CliRunner().invoke(group, ["loop"]).exception, RecursionError)


def test_the_hour_has_the_same_steps_with_airflow_and_without(tmp_path: Path):
    write_settings(Warehouse(tmp_path / "w"), tmp_path / "inbox", "bundle", datetime(2026, 1, 5))
    with (tmp_path / "w" / "drivetail.toml").open("a") as file:
        file.write('[metrics]\nfile = "x.prom"\n[collect]\nfile = "x.json"\n[[notify]]\nname = "ops"\nurl = "json://x"\n')
    commands = {" ".join(step[:2]) for step in steps(load_settings(Warehouse(tmp_path / "w")))}
    of_airflow = ast.get_docstring(ast.parse((ROOT / "dags" / "drivetail_hourly.py").read_text(encoding="utf-8")))
    assert commands | {"inbox"} == set(re.findall(r"\| `drivetail ([^`]+)` \|$", of_airflow or "", re.MULTILINE))


def test_the_man_page_has_every_command():
    assert set(re.findall(r'^\.SS "drivetail ([^"]+)"$', page(), re.MULTILINE)) >= set(main.commands)


def test_an_ingest_of_readings_says_how_many_drive_hours_they_are(tmp_path: Path):
    """Three drives, read every five minutes of the two hours from 10:00."""
    names = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds")
    (tmp_path / "web1").mkdir()
    (tmp_path / "web1" / "a.prom").write_text(
        "".join(
            f'node_disk_{name}_total{{device="{device}"}} {number} {1_767_607_200_000 + number * 300_000}\n'
            for name in names for device in ("sda", "sdb", "sdc") for number in range(25)
        )
    )  # fmt: skip
    said = drivetail("ingest", "prometheus", tmp_path / "web1", "-w", tmp_path / "w").stdout.splitlines()
    assert said[-2].startswith("1 file: 75 rows in, ") and said[-1].startswith(
        "They hold 6 drive-hours, 2026-01-05 10:00 to 2026-01-05 11:00"
    )
    again = drivetail("ingest", "prometheus", tmp_path / "web1", "-w", tmp_path / "w").stdout
    assert "nothing new" in again and "They hold" not in again


@pytest.mark.parametrize(
    "address", ["http://h/?token=s3cret", "http://ada:s3cret@[h", "http://h:x/#s3cret", "http://?t=s3cret", "https://ada:s3cret@h"]
)
@pytest.mark.parametrize("command", ["ingest prometheus {}", "ingest ceph {}", "doctor prometheus {}", "init --server {}"])
def test_a_refused_address_shows_no_secret(address: str, command: str, tmp_path: Path):
    hours = ["--from", "2026-01-01", "--to", "2026-01-02"] if "ingest" in command else []
    done = drivetail(*command.format(address).split(), *hours, "-w", tmp_path)
    assert done.exit_code and "s3cret" not in done.output
    assert not any("s3cret" in file.read_text() for file in tmp_path.rglob("*") if file.is_file())


@pytest.mark.parametrize("time", ["0001-01-01T00", "0001-01-01T00:00+14:00", "1969-12-31T23", "9999-12-31T23:59-12:00"])
@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "prometheus", "http://127.0.0.1:9", "--to"), ("what-if", "--worst", "1", "--since"), ("report", "--as-known-at"),
        ("decide", "d1", "dismiss", "--by", "ada", "--note", "known", "--until"), ("inbox", "--until"),
        ("init", "--server", "http://127.0.0.1:9", "--start"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_time_that_no_telemetry_has_is_refused(command: tuple[str, ...], time: str, tmp_path: Path) -> None:
    """At the ends of the calendar there is no hour before, or after."""
    refused = drivetail(*command, time, "--warehouse", tmp_path)
    assert refused.exit_code == 2 and time in refused.output
