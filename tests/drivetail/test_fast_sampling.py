"""A host looks more often while one of its drives has an open alert, within its bounds, and what it saw is in a mart."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from drivetail.host.collect import Collected, Collector, looking
from drivetail.host.fast_sampling import FastSampling
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from tests.drivetail.conftest import drivetail
from tests.drivetail.test_collect import AT, T0, Host

HOUR = 3600
FILE = {"every_seconds": 10, "hours": 2, "megabytes": 1, "hosts": {"web1": "2026-01-05T12:00:00Z"}}


class Over(Exception):
    """The time of the test is over."""


class Machine(Host):
    """A clock that only sleeping moves; each drive does ten I/Os a second, of 3 ms each; sdd is throttled: 12 ms."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, layout=2)
        self.now = self.until = float(T0)
        self.looks: list[float] = []
        self.sleep(0)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if self.now + seconds > self.until and seconds:
            raise Over
        self.now += seconds
        self.looks.append(self.now)
        ios = round(10 * (self.now - T0))
        self.counts({drive: (ios, ios * (12 if drive == "d" else 3)) for drive in "abcd"})

    def collects(self, out: Path, file: Path, until: float) -> list[Collected]:
        """Deliveries of a service that looks every five minutes until then."""
        collector = Collector(out, host="web1", proc=self.proc, runner=self.run)
        self.until = until
        delivered = []
        service = looking(collector, 300, FastSampling(file, "web1", collector.spool), clock=self.clock, sleep=self.sleep)
        with suppress(Over):
            for each in service:
                delivered += [] if each is None else [each]
        return delivered


def ask(*arguments: object) -> str:
    done = drivetail(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.proof
def test_a_throttled_drive_is_sampled_while_its_alert_is_open(tmp_path: Path) -> None:
    machine, warehouse, out = Machine(tmp_path), Warehouse(tmp_path / "warehouse"), tmp_path / "out"
    file = tmp_path / "shipped.json"
    ask("init", "--inbox", out, "--source", "collected", "-w", warehouse.root)
    with warehouse.settings.open("a", encoding="utf-8") as settings:
        settings.write(f'[collect]\nfile = "{file}"\nfiner_when_slow = "20s"\nfiner_hours = 1\n')

    def landed() -> None:
        ask("ingest", "collected", out, "--resolution", "1m", "-w", warehouse.root)
        ask("build", "-w", warehouse.root)

    assert machine.collects(out, file, T0 + 4.2 * HOUR)
    assert {round(two - one) for one, two in zip(machine.looks[1:], machine.looks[2:], strict=False)} == {300}
    landed()
    assert ask("alerts", "--hosts", "-w", warehouse.root) == f"{file}: web1\n"
    assert json.loads(file.read_text())["hosts"] == {"web1": "2026-01-05T12:00:00Z"}
    with open_published(warehouse) as connection:
        assert fetch(connection, "from marts.fct_drive_samples") == []  # five minutes say nothing of one

    # the service is started again at 14:10, and looks at once
    began = machine.now
    machine.looks.clear()
    machine.collects(out, file, T0 + 7.1 * HOUR)
    finer = [at for at, after in zip(machine.looks, machine.looks[1:], strict=False) if after - at == 20]
    assert began <= finer[0] < began + 300
    assert HOUR - 300 <= finer[-1] - finer[0] <= HOUR
    landed()
    with open_published(warehouse) as connection:
        samples = fetch(connection, "select * from marts.fct_drive_samples where drive_id = 'Sd' order by from_utc")
        hours = fetch(connection, "select hour_utc, slowdown from marts.fct_drive_hours where drive_id = 'Sd' order by hour_utc")
    seen = [row["from_utc"] for row in samples]
    assert AT + timedelta(hours=4.1) <= seen[0] and seen[-1] <= AT + timedelta(hours=5.3)
    assert len(seen) == len(set(seen)) and 58 <= len(seen) <= 62
    assert {round(row["slowdown"], 6) for row in samples} == {4.0}
    # the hours are those of five-minute looks: 14:00 to 17:00 are whole, whatever was looked at in between
    assert [(row["hour_utc"], round(row["slowdown"], 6)) for row in hours] == [(AT + timedelta(hours=n), 4.0) for n in range(7)]


@pytest.fixture
def finer(tmp_path: Path) -> FastSampling:
    (tmp_path / "slow.json").write_text(json.dumps(FILE))
    return FastSampling(tmp_path / "slow.json", "web1", tmp_path)


def test_finer_sampling_ends_after_its_hours_and_after_its_bytes(finer: FastSampling) -> None:
    assert finer.seconds(60, T0, 5_000) == 10
    assert finer.seconds(5, T0, 0) == 5  # never less often
    assert finer.seconds(60, T0 + 2 * HOUR - 1, 500_000) == 10
    assert finer.seconds(60, T0 + 2 * HOUR, 0) == 60
    again = FastSampling(finer.file, "web1", finer.state.parent)  # a restart resumes
    assert again.seconds(60, T0 + 2 * HOUR + 10, 0) == 60

    finer.file.write_text(json.dumps({**FILE, "hosts": {"web1": "2026-01-06T12:00:00Z"}}))  # another alert
    assert again.seconds(60, T0 + 30 * HOUR, 999_999_999) == 10
    assert again.seconds(60, T0 + 30 * HOUR + 10, 999_999) == 10
    assert again.seconds(60, T0 + 30 * HOUR + 20, 1) == 60
    assert FastSampling(finer.file, "web1", finer.state.parent).seconds(60, T0 + 30 * HOUR + 30, 1) == 60
    finer.file.write_text(json.dumps(FILE))  # that one has cleared, the first is still open: it gets no new budget
    assert again.seconds(60, T0 + 30 * HOUR + 40, 1) == 60


def test_without_an_alert_or_a_file_it_looks_as_it_always_does(finer: FastSampling, tmp_path: Path) -> None:
    assert FastSampling(finer.file, "web2", tmp_path).seconds(60, T0, 0) == 60
    finer.file.write_text(json.dumps({**FILE, "hosts": {}}))
    assert finer.seconds(60, T0, 0) == 60 and finer.trouble is None
    finer.file.unlink()
    assert finer.seconds(60, T0, 0) == 60 and finer.trouble is None


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "slow.json: Invalid JSON"), ("[]", "slow.json: Input should be"), (json.dumps({**FILE, "every_seconds": 1}), "every_seconds: ")],
)
def test_a_file_that_cannot_be_used_is_named_with_the_next_delivery(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "slow.json").write_text(content)
    machine = Machine(tmp_path)
    delivered = machine.collects(tmp_path / "out", tmp_path / "slow.json", T0 + 1.1 * HOUR)
    assert [len([line for line in each.missing if words in line and "\n" not in line]) for each in delivered] == [1, 1]
    assert {two - one for one, two in zip(machine.looks[1:], machine.looks[2:], strict=False)} == {300}


def test_a_single_look_takes_no_finer_ones(tmp_path: Path) -> None:
    done = drivetail("collect", "--once", "--finer", "x.json", "--out", tmp_path / "out")
    assert (done.exit_code, "leave --finer out" in done.output) == (2, True)
