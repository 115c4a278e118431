"""A step that keeps failing is told once, again after a day, and once when all is well again; by each receiver that took it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from drivetail.service.settings import Receiver, load_settings
from drivetail.tell.failures import tell_failure, tell_well
from engine.warehouse import Warehouse
from tests.drivetail.conftest import drivetail
from tests.webhook import Webhook, free_port, name_receivers

NIGHT = datetime(2026, 1, 5, 2, 31)
STALE = "the last hour published is 2026-01-04 20:00, {} hours before {}; check whether anything arrives"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        yield server


@pytest.fixture
def warehouse(tmp_path: Path, webhook: Webhook) -> Warehouse:
    name_receivers(made := Warehouse(tmp_path), well=f"json://127.0.0.1:{webhook.server_port}/")
    return made


@pytest.fixture
def told(warehouse: Warehouse, webhook: Webhook) -> Callable[[], list[str]]:
    """Messages that came since it was asked last."""

    def read() -> list[str]:
        came = [str(body["message"]) for _, body in webhook.taken]
        webhook.taken.clear()
        return came

    return read


def receivers(warehouse: Warehouse) -> list[Receiver]:
    return load_settings(warehouse).notify


def fails(warehouse: Warehouse, message: str, *, at: datetime = NIGHT, step: str = "build", **options: bool) -> None:
    tell_failure(warehouse, receivers(warehouse), "hourly", step, message, now=at, **options)


def test_a_lasting_failure_is_sent_once_and_again_the_next_night(warehouse: Warehouse, told: Callable[[], list[str]]) -> None:
    for number in range(9):  # numbers change from run to run, and what is new since
        fails(warehouse, f"model int_a: line {number + 1} is wrong; new is delivery {number}", at=NIGHT + timedelta(hours=number))
    assert told() == ["hourly, build: model int_a: line 1 is wrong; new is delivery 0"]
    fails(warehouse, "another model is wrong")
    fails(warehouse, "model int_a: line 1 is wrong", step="each_day")
    assert told() == ["hourly, build: another model is wrong", "hourly, each_day: model int_a: line 1 is wrong"]
    # the nightly run begins some seconds sooner or later
    fails(warehouse, "model int_a: line 10 is wrong", at=NIGHT + timedelta(days=1, seconds=-20))
    assert told() == ["hourly, build: model int_a: line 10 is wrong"]


def test_an_age_that_grows_is_the_same_failure(warehouse: Warehouse, told: Callable[[], list[str]]) -> None:
    fails(warehouse, STALE.format(4, "2026-01-05 01:00"))
    fails(warehouse, STALE.format(15, "2026-01-05 12:00"), at=NIGHT + timedelta(hours=11))
    assert len(told()) == 1


def test_all_is_well_again_once_and_a_new_failure_is_news(warehouse: Warehouse, told: Callable[[], list[str]]) -> None:
    tell_well(warehouse, receivers(warehouse), "hourly")
    assert told() == []
    fails(warehouse, "no room")
    tell_well(warehouse, receivers(warehouse), "nightly")  # another's runs
    fails(warehouse, "no room", step="land")
    told()
    tell_well(warehouse, receivers(warehouse), "hourly")
    tell_well(warehouse, receivers(warehouse), "hourly")
    assert told() == ["hourly: well again: build, land"]
    fails(warehouse, "no room")
    assert told() == ["hourly, build: no room"]


def test_each_delivery_that_waits_is_sent_and_a_green_run_ends_none(warehouse: Warehouse, told: Callable[[], list[str]]) -> None:
    for number in (1, 2, 2):
        fails(warehouse, f"a.csv is held in quarantine {number}", step="land", lasts=False)
    tell_well(warehouse, receivers(warehouse), "hourly")
    assert told() == ["hourly, land: a.csv is held in quarantine 1", "hourly, land: a.csv is held in quarantine 2"]


def test_a_receiver_that_was_down_gets_the_message_later(
    warehouse: Warehouse, webhook: Webhook, told: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    well = f"json://127.0.0.1:{webhook.server_port}/"
    name_receivers(warehouse, down=f"json://127.0.0.1:{free_port()}/SECRETTOKEN", well=well)
    fails(warehouse, "no room")
    assert told() == ["hourly, build: no room"]
    assert "down: did not take the message" in caplog.text and "SECRETTOKEN" not in caplog.text
    name_receivers(warehouse, down=well, well=well)
    fails(warehouse, "no room")
    assert told() == ["hourly, build: no room"]


def test_a_disk_that_keeps_nothing_keeps_no_message(
    warehouse: Warehouse, told: Callable[[], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    warehouse.raw.write_text("a file where the folder should be")
    fails(warehouse, "no room")
    assert told() == ["hourly, build: no room"] and "hourly, build: no room" in caplog.text


def test_an_hour_without_airflow_sends_the_same_messages(
    warehouse: Warehouse, told: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivetail.service.hour.steps", lambda settings: [("inbox",), ("build",)])
    assert [drivetail("hour", "-w", warehouse.root).exit_code for _ in range(2)] == [1, 1]
    (message,) = told()
    assert message.startswith(f"drivetail hour, drivetail build: {warehouse.root}: nothing has landed there")
    monkeypatch.setattr("drivetail.service.hour.steps", lambda settings: [("inbox",)])
    assert [drivetail("hour", "-w", warehouse.root).exit_code for _ in range(2)] == [0, 0]
    assert told() == ["drivetail hour: well again: drivetail build"]
