"""`drivetail alerts --notify` and `--new`: each receiver gets each alert once, what fails is sent again, and no URL is shown."""

from __future__ import annotations

import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import duckdb
import pytest

from drivetail.service import SettingsError
from drivetail.service.settings import Receiver, load_settings, settings_file
from drivetail.tell import notify
from drivetail.tell.silence import silences
from engine.warehouse import Warehouse
from ingest.raw.register import Register
from tests.drivetail.conftest import add_alert, drivetail
from tests.webhook import Webhook, free_port, name_receivers

pytest.importorskip("apprise", reason="drivetail[notify] is not installed")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "WAIT_SECONDS", 0.01)


@pytest.fixture
def well() -> Iterator[Webhook]:
    with Webhook() as server:
        yield server


@pytest.fixture
def failing() -> Iterator[Webhook]:
    with Webhook(500) as server:
        yield server


def test_a_failed_receiver_is_retried_and_the_others_are_not(settled: Warehouse, well: Webhook, failing: Webhook) -> None:
    name_receivers(
        settled,
        well=f"json://127.0.0.1:{well.server_port}/SECRETPATH",
        failing=f"json://user:SECRETPASSWORD@127.0.0.1:{failing.server_port}/SECRETPATH?-token=SECRETTOKEN",
        dead=f"json://127.0.0.1:{free_port()}/SECRETPATH",
    )
    first = drivetail("alerts", "--notify", "-w", settled.root)
    assert (first.exit_code, first.stdout) == (1, "well: 2 new alerts, 1 silent host\n")
    lines = first.stderr.splitlines()
    assert [line.split(":")[:2] for line in lines] == [["drivetail", " failing"], ["drivetail", " dead"]]
    assert "error=500" in lines[0] and "onnection error" in lines[1] and "SECRET" not in first.output
    assert len(failing.taken) == 1 + notify.RETRIES
    (_, message), _ = well.taken
    assert message["title"] == "d15 3.2x and 1 more (drivetail)"
    lines = message["message"].splitlines()
    assert [line.split(":")[0] for line in lines] == ["d15", "Its ticket", "v1", "Its ticket"]
    assert lines[1] == "Its ticket: `drivetail decide d15 replace --ticket-text`"
    assert message["type"] == "warning"

    failing.status = 200
    second = drivetail("alerts", "--notify", "-w", settled.root)
    assert (second.exit_code, second.stdout) == (1, "well: no new alert\nfailing: 2 new alerts, 1 silent host\n")
    assert (len(well.taken), len(failing.taken)) == (2, 3 + notify.RETRIES)
    assert "SECRET" not in settled.log.read_text() + Register(settled.raw, "alerts").path.read_text()
    # the terminal is asked by itself
    assert "d15" in drivetail("alerts", "--new", "-w", settled.root).stdout
    assert drivetail("alerts", "--new", "-w", settled.root).stdout == "No new alert\n"


def test_a_message_asks_for_one_drive_of_a_group_at_a_time(settled: Warehouse, well: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drivetail.tell.findings.MANY_DRIVES", 10)
    add_alert(settled, "d14", max_slowdown=9.0)
    name_receivers(settled, well=f"json://127.0.0.1:{well.server_port}/")
    assert drivetail("alerts", "--notify", "-w", settled.root).stdout == "well: 3 new alerts, 1 silent host\n"
    (_, message), _ = well.taken
    assert [line for line in message["message"].splitlines() if line.startswith("Wait")] == [
        "Wait before acting on it: d14 of RAID group g1 first: one drive at a time."
    ]
    assert [part.split()[0] for part in message["message"].split("`drivetail decide ")[1:]] == ["d14", "v1"]


def test_a_silent_host_is_reported_once_until_another_of_its_drives_stops(settled: Warehouse, well: Webhook) -> None:
    def notified(change: str = "drive_id = drive_id") -> str:
        with duckdb.connect(str(settled.published)) as connection:
            connection.execute(f"update status.fct_drive_freshness set {change} where drive_id = 'd21'")
        return str(drivetail("alerts", "--notify", "-w", settled.root).stdout)

    name_receivers(settled, well=f"json://127.0.0.1:{well.server_port}/")
    assert notified() == "well: 2 new alerts, 1 silent host\n"
    message = well.taken[1][1]
    assert message["title"] == "g2: 1 of 7 drives silent (drivetail)"
    assert message["message"] == "1 of 7 drives of RAID group g2 has sent nothing for 29 h: s1"
    assert notified() == "well: no new alert\n"
    assert notified("is_silent = true, silent_for_hours = 3") == "well: no new alert, 1 silent host\n"
    assert notified("last_hour_utc = last_hour_utc + interval 24 hour") == "well: no new alert\n"
    assert notified("last_hour_utc = last_hour_utc + interval 1 hour") == "well: no new alert, 1 silent host\n"


def test_a_hundred_silent_hosts_are_one_message() -> None:
    drive = {"drive_id": "S1", "device": "sda"}
    hosts = [
        {"host": f"h{n}", "raid_group_id": None, "silent_for_hours": 3, "silent_drives": 1, "host_drives": 1, "drives": [drive]}
        for n in range(100)
    ]
    lines = silences(hosts).splitlines()
    assert len(lines) == 21 and lines[20] == "and 80 more; `drivetail status` lists them"


def test_an_address_comes_from_the_environment(settled: Warehouse, well: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    name_receivers(settled, pager="$DRIVETAIL_PAGER")
    missing = drivetail("alerts", "--notify", "-w", settled.root)
    assert missing.exit_code == 1 and "the environment has no DRIVETAIL_PAGER" in missing.stderr
    monkeypatch.setenv("DRIVETAIL_PAGER", f"json://127.0.0.1:{well.server_port}/SECRETPATH")
    assert drivetail("alerts", "--notify", "-w", settled.root).stdout == "pager: 2 new alerts, 1 silent host\n"
    assert well.taken[0][0] == "/SECRETPATH"


@pytest.mark.parametrize("url", ["slack://SECRETTOKEN", "nosuch://SECRETTOKEN/x", "mailto://SECRETTOKEN"])
def test_an_address_that_is_none_is_not_shown(settled: Warehouse, url: str) -> None:
    name_receivers(settled, wrong=url)
    refused = drivetail("alerts", "--notify", "-w", settled.root)
    assert refused.exit_code == 1 and refused.stderr.startswith("drivetail: wrong: its url is not one of Apprise's")
    assert "SECRET" not in refused.output and len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("text", ['[[notify]]\nname = "a"\nurl = "SECRET"\n', '[[notify]]\nname = "a"\nurl = "x://SECRET"\n' * 2])
def test_wrong_settings_show_no_address(settled: Warehouse, text: str) -> None:
    settings_file(settled).write_text(text)
    with pytest.raises(SettingsError, match=r"notify\.a\.url: give one of|two receivers are named 'a'") as refused:
        load_settings(settled)
    assert "SECRET" not in str(refused.value)


def test_without_receivers_it_says_where_to_name_them(settled: Warehouse) -> None:
    settings_file(settled).write_text("")
    refused = drivetail("alerts", "--notify", "-w", settled.root)
    assert refused.exit_code == 1 and "drivetail.toml: names no receiver; add a [[notify]]" in refused.stderr
    assert drivetail("alerts", "--notify", "--new", "-w", settled.root).exit_code == 2


def test_a_receiver_may_be_a_ticket_systems_table(well: Webhook) -> None:
    well.status = 201
    fields = ":title=short_description&:message=description&:version=&:type=&:attachments=&:category=hardware"
    url = f"json://user:word@127.0.0.1:{well.server_port}/api/now/table/incident?{fields}"
    notify.send(Receiver(name="tickets", url=url), "drivetail: 1 new alert", "S5 is slow")
    ((_, taken),) = well.taken
    assert taken == {"short_description": "drivetail: 1 new alert", "description": "S5 is slow", "category": "hardware"}


def test_slack_shows_a_name_as_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import requests

    class Answer:
        status_code, text, content = 200, "ok", b"ok"

    sent: list[Any] = []
    monkeypatch.setattr(requests, "request", lambda *_, **named: sent.append(named["data"]) or Answer())
    slack = Receiver(name="slack", url=f"slack://T1JJ3T3L2/A1BRTD4JD/{'x' * 24}/#storage")
    notify.send(slack, "drivetail", "drive <!channel> & d1 is slow")
    assert "<!channel>" not in str(sent) and "&lt;!channel&gt; &amp; d1" in str(sent)


class Mailbox(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            verb = line[:4].upper().strip()
            self.wfile.write({b"DATA": b"354 go on\r\n", b"QUIT": b"221 bye\r\n"}.get(verb, b"250 well\r\n"))
            if verb == b"DATA":
                self.server.taken.append(b"".join(iter(self.rfile.readline, b".\r\n")))  # type: ignore[attr-defined]
                self.wfile.write(b"250 taken\r\n")


def test_mail_shows_a_name_as_a_name() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Mailbox) as mailbox:
        mailbox.taken = []  # type: ignore[attr-defined]
        threading.Thread(target=mailbox.serve_forever, daemon=True).start()
        url = f"mailto://127.0.0.1:{mailbox.server_address[1]}?mode=insecure&from=drivetail@example.org&to=storage@example.org"
        notify.send(Receiver(name="mail", url=url), "drivetail: 1 new alert", 'drive <img src="http://example.org/x"> is slow')
        mailbox.shutdown()
    (mail,) = map(message_from_bytes, mailbox.taken)  # type: ignore[attr-defined]
    assert mail["To"] == "storage@example.org" and mail["Subject"] == "drivetail: 1 new alert"
    assert mail.get_content_type() == "text/plain" and "<img src=" in mail.get_payload(decode=True).decode()


def command(warehouse: Warehouse, stdout: Any) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "drivetail", "alerts", "--new", "-w", str(warehouse.root)]
    return subprocess.Popen(arguments, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_an_alert_that_could_not_be_written_is_new_again(settled: Warehouse) -> None:
    with open("/dev/full", "w") as full, command(settled, full) as process:
        _, said = process.communicate(timeout=600)
    assert (process.returncode, len(said.splitlines())) == (1, 1) and "No space left" in said
    reader, writer = os.pipe()
    os.close(reader)
    with command(settled, writer) as process:
        os.close(writer)
        _, said = process.communicate(timeout=600)
    assert (process.returncode, said) == (1, "")
    assert Register(settled.raw, "alerts").read() == []
    assert "d15" in drivetail("alerts", "--new", "-w", settled.root).stdout
