"""The hourly run asks servers for the hour of its interval; one that does not answer holds nothing else up."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.warehouse import Warehouse
from ingest import list_deliveries
from ingest.sources.prometheus import client as client_module
from tests.ingest.prometheus_server import FEEDS, Server, counted_drives, serving

pytestmark = [pytest.mark.xdist_group("airflow"), pytest.mark.usefixtures("airflow_database")]

HOUR = datetime(2026, 1, 5, 10)
UNIX = 1_767_607_200
SETTINGS = """
[schedule]
start = 2026-01-05T10:00:00Z
end = 2026-01-05T13:00:00Z
wait_minutes = 0
retries = 1
retry_minutes = 0.01
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(client_module, "RETRIES", 0)
    with serving(Server(counted_drives(UNIX - 7200, UNIX + 4 * 3600))) as running:
        yield running


@pytest.fixture
def warehouse(tmp_path: Path, server: Server, task_context: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    root = tmp_path / "warehouse"
    root.mkdir()
    (root / "drivetail.toml").write_text(SETTINGS + FEEDS.format(url=server.url, folder="../inbox"))
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox/drives.csv").write_text("drive_id,raid_group_id\nd1,g1\n")
    monkeypatch.setenv("DRIVETAIL_WAREHOUSE", str(root))
    return Warehouse(root)


def interval(hour: datetime) -> dict[str, datetime]:
    return {"data_interval_end": hour.replace(tzinfo=UTC) + timedelta(hours=1)}


def test_a_run_pulls_its_own_hour_and_says_so_when_nobody_answers(
    warehouse: Warehouse, server: Server, tasks: Callable[[str], Callable[..., Any]]
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    found = tasks("sources.discover")(**interval(HOUR))
    asked = [{"inbox": "metrics", "path": f"{server.url}!2026-01-05T09.2026-01-05T11"}]
    assert found == [[{"inbox": "fleet", "path": str(warehouse.root / "../inbox/drives.csv")}], asked]

    server.fault = lambda path, parameters, before: (503, {}, b"down")
    tasks("raw.land")(found[0])
    with pytest.raises(AirflowFailException, match=r"server metrics: .*503.*; the next hourly run pulls these hours again"):
        tasks("raw.land")(asked)
    server.fault = lambda path, parameters, before: None
    tasks("raw.land")(asked)
    hours = [(delivery.first_hour, delivery.last_hour) for delivery in list_deliveries(warehouse.root)]
    assert hours == [(None, None), (HOUR - timedelta(hours=1), HOUR)]
    assert {int(parameters["end"]) for _, parameters in server.asked} == {UNIX + 3600}

    ((after,),) = tasks("sources.discover")(**interval(HOUR + timedelta(hours=1)))
    assert after["path"].endswith("!2026-01-05T10.2026-01-05T12")
    assert tasks("sources.discover")(**interval(HOUR)) == [asked]

    # a share that is not mounted: servers are pulled all the same
    shutil.rmtree(warehouse.root / "../inbox")
    gone, pulled = tasks("sources.discover")(**interval(HOUR))
    assert pulled == asked
    with pytest.raises(AirflowFailException, match=r"inbox fleet: .*/inbox: No such file or directory"):
        tasks("raw.land")(gone)
