"""kill -9 at any instant: run again, and the marts are those of an undisturbed run; readers never notice.

Builds make every mart (`--daily`), or what is made once a day would differ from the reference of now.
Where a phase takes long (landing, computing days, writing a publication) the process group is killed at a random instant of it. Phases of a
millisecond (the commit of a delivery, the swap, the clean-up) are killed before each of their steps (tests/proof/forks.py).
DRIVETAIL_KILLS is the number of kills, over ten phases; 10 unless given, 50 in `make soak`. DRIVETAIL_KILL_SEED repeats the draw.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ingest import list_deliveries
from tests.golden import awkward_fleet
from tests.proof.forks import Forks
from tests.proof.readers import Reader
from tests.proof.support import environment, marts_differences
from tests.reference.compare import compare
from tests.reference.fleets import Fleet, Records, join, random_fleet, write_bundle
from tests.reference.reference import SCHEMAS, compute

PHASES = 10
ROUNDS = max(1, -(-int(os.environ.get("DRIVETAIL_KILLS", "10")) // PHASES))
"""Kills in each phase."""
ATTEMPTS = 4
"""A random instant may come just after the phase, when the machine has become faster: this number of further deliveries is tried."""
LANDING = {"hash", "read", "judge"}
AGED_SECONDS = 2 * 3600
REMOVALS = {"os.remove", "shutil.rmtree"}


class Killer:
    """A warehouse, and commands on it that are killed."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.rng = folder, rng
        self.warehouse = folder / "warehouse"
        self.published = self.warehouse / "warehouse.duckdb"
        self.log = self.warehouse / "drivetail.log"
        self.forks = Forks(folder / "forks")

    @property
    def option(self) -> tuple[object, ...]:
        return "--warehouse", self.warehouse

    def kill(self, arguments: tuple[object, ...], phases: set[str], seconds: float) -> bool:
        """Run a command and kill -9 its process group at a random instant of the given phases, that take about so long.

        Returns: whether it died in one of the phases.
        """
        offset = self.log.stat().st_size
        pid = self.forks.start(*arguments)
        deadline = time.monotonic() + 120
        while not phases.intersection(self.noted(pid, offset)):
            assert time.monotonic() < deadline, f"{arguments}: none of {phases} within two minutes"
            time.sleep(0.0005)
        time.sleep(self.rng.random() * seconds)
        with suppress(ProcessLookupError):  # it was through
            os.killpg(pid, signal.SIGKILL)
        return self.forks.finish()[0] == -signal.SIGKILL and self.noted(pid, offset)[-1] in phases

    def kill_at_step(self, arguments: tuple[object, ...], phase: str, step: int) -> bool:
        """Run a command that kills itself before a step of a phase. Returns: whether it got there."""
        self.forks.start(*arguments, phase=phase, step=step)
        code, _ = self.forks.finish()
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def noted(self, pid: int, offset: int) -> list[str]:
        """Phases that a process has noted in the log, from an offset of the file on."""
        with self.log.open(encoding="utf-8") as handle:
            handle.seek(offset)
            lines = [json.loads(line) for line in handle if line.endswith("}\n")]
        return [line["phase"] for line in lines if line["pid"] == pid]

    def seconds(self, arguments: tuple[object, ...]) -> dict[str, float]:
        """Run a command undisturbed. Returns: how long each of its phases took."""
        offset = self.log.stat().st_size
        self.forks.run(*arguments)
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8")[offset:].splitlines()]
        times = [time.mktime(time.strptime(line["at"][:19], "%Y-%m-%dT%H:%M:%S")) + float(line["at"][19:23]) for line in lines]
        taken: dict[str, float] = {}
        for line, begun, ended in zip(lines, times, [*times[1:], times[-1]], strict=True):
            taken[line["phase"]] = taken.get(line["phase"], 0.0) + ended - begun
        return taken

    def steps_around(self, steps: list[str], *decisive: str) -> Iterator[int]:
        """Steps to die before, for ever: first those next to the decisive operations, then all, in random order."""
        near = {step for at, operation in enumerate(steps) if operation in decisive for step in (at, at + 1) if step < len(steps)}
        assert near, f"none of {decisive} in {steps}"
        while True:
            yield from self.rng.sample(sorted(near), len(near))
            yield from self.rng.sample(range(len(steps)), len(steps))


class Site(Killer):
    """A warehouse that is written, killed and read, and the deliveries that come to it."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        super().__init__(folder, rng)
        self.delivered: list[Path] = []
        fleet = random_fleet(rng.randrange(1_000_000))
        self.twin = folder / "undisturbed"
        self._twin_has = 0
        self._killed: Counter[str] = Counter()
        self._coming = pieces(fleet, 8 * (ROUNDS + ATTEMPTS) + 12, folder / "deliveries", rng)
        self.deliver()
        self.forks.run("build", *self.option)
        self.readers = [Reader(self.published, mode, folder) for mode in ("poll", "hold")]

    def next(self) -> tuple[object, ...]:
        """The next delivery. Returns: the arguments that ingest it."""
        self.delivered.append(next(self._coming))
        return "ingest", "bundle", self.delivered[-1], *self.option

    def deliver(self) -> None:
        """Ingest the next delivery, undisturbed."""
        self.forks.run(*self.next())

    def has_killed(self, what: str) -> int:
        """Note one more round of kills. Returns: how many there were."""
        self._killed[what] += 1
        return self._killed[what]

    def expected(self) -> dict[str, list[dict]]:
        """The marts of what has been delivered, by the reference."""
        return compute(self.delivered)

    def check_readers(self) -> None:
        for reader in self.readers:
            reader.check()

    def check_end(self, what: str) -> None:
        """Enough was killed, and the marts are those of the reference; after many kills also those of an undisturbed run over the same."""
        assert self._killed[what] == ROUNDS, f"only {self._killed[what]} of {ROUNDS} rounds of kills hit the phase"
        self.check_readers()
        assert compare(self.expected(), self.published) == []
        if ROUNDS == 1:
            return
        for folder in self.delivered[self._twin_has :]:
            self.forks.run("ingest", "bundle", folder, "--warehouse", self.twin)
        self._twin_has = len(self.delivered)
        self.forks.run("build", "--daily", "--warehouse", self.twin)
        assert marts_differences(self.published, self.twin / "warehouse.duckdb") == []

    def close(self) -> None:
        poll, hold = (reader.stop() for reader in self.readers)
        publications = {entry["publication"] for entry in poll}
        assert len(publications) >= min(20, 2 * ROUNDS), f"the reader saw only {len(publications)} publications in {len(poll)} opens"
        across = min(2, ROUNDS)  # one round of killed deliveries ends in one build
        assert any(entry["came_meanwhile"] >= across for entry in hold), f"no publication was held across {across} more: {hold}"


def pieces(fleet: Fleet, count: int, folder: Path, rng: random.Random) -> Iterator[Path]:
    """The fleet's records in random order, cut into a number of deliveries; the first holds a third."""
    kinds = [rng.sample(rows, len(rows)) for rows in join(fleet.records())]
    cuts = [len(rows) // 3 for rows in kinds]
    first: Records = tuple(rows[:cut] for rows, cut in zip(kinds, cuts, strict=True))  # type: ignore[assignment]
    yield write_bundle(first, folder / "part-00", "parquet")
    for number in range(1, count):
        part: Records = tuple(rows[cut + number - 1 :: count - 1] for rows, cut in zip(kinds, cuts, strict=True))  # type: ignore[assignment]
        yield write_bundle(part, folder / f"part-{number:02d}", "parquet")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    seed = int(os.environ.get("DRIVETAIL_KILL_SEED", "0")) or random.randrange(1, 1_000_000)
    print(f"repeat the draw with DRIVETAIL_KILL_SEED={seed}")
    made = Site(tmp_path_factory.mktemp("killed"), random.Random(seed))
    yield made
    made.close()


@pytest.mark.soak
@pytest.mark.xdist_group("killed-2")
def test_a_killed_ingest_leaves_a_delivery_whole_or_absent(site: Site) -> None:
    """Killed while landing, and the same delivery again while it commits; then run to the end."""
    taken = site.seconds(site.next())
    landing = sum(taken[phase] for phase in LANDING & set(taken))
    steps = site.steps_around(site.forks.run(*site.next())["commit"], "os.rename")
    for _ in range(ROUNDS + ATTEMPTS):
        arguments = site.next()
        before = list_deliveries(site.warehouse)
        if not site.kill(arguments, LANDING, landing):
            site.forks.run(*arguments)  # it may have died later, before it was committed
            landing /= 2
            continue
        assert list_deliveries(site.warehouse) == before, "a delivery that was not committed is there"
        if not site.kill_at_step(arguments, "commit", next(steps)):
            continue  # it landed: its commit has fewer steps than that of the delivery they are of
        after = list_deliveries(site.warehouse)
        assert after in (before, [*before, after[-1]])
        assert all((delivery.path / "delivery.json").exists() for delivery in after)
        site.forks.run(*arguments)
        assert len(list_deliveries(site.warehouse)) == len(before) + 1
        assert list((site.warehouse / "raw/.staging").iterdir()) == []
        site.check_readers()
        if site.has_killed("landing") == ROUNDS:
            break
    site.forks.run("build", "--daily", *site.option)
    site.check_end("landing")


@pytest.mark.soak
@pytest.mark.xdist_group("killed-1")
@pytest.mark.parametrize("phase", ["days", "relations"])
def test_a_killed_build_is_simply_done_again(site: Site, phase: str) -> None:
    """Killed while it computes days, or the relations that are made of them, with a publication in its place."""
    build = ("build", "--daily", *site.option)
    site.deliver()
    seconds = site.seconds(build)[phase]
    for _ in range(ROUNDS + ATTEMPTS):
        before = site.expected()
        site.deliver()
        if not site.kill(build, {phase}, seconds):
            site.forks.run(*build)  # it may have died later, before it published
            seconds /= 2
            continue
        assert compare(before, site.published) == [], "a build that was killed has changed what readers see"
        site.forks.run(*build)
        assert compare(site.expected(), site.published) == []
        site.check_readers()
        if site.has_killed(phase) == ROUNDS:
            break
    site.check_end(phase)


@pytest.mark.soak
@pytest.mark.xdist_group("killed-2")
@pytest.mark.parametrize("phase", ["sums", "compare", "rebuild"])
def test_a_killed_maintenance_changes_nothing(site: Site, phase: str) -> None:
    """Killed in each of its proofs. Then a build takes a delivery in over what it left, and it is run to the end."""
    maintain, build = ("maintain", *site.option), ("build", "--daily", *site.option)
    site.forks.run(*build)
    seconds = site.seconds(maintain)[phase]
    for _ in range(ROUNDS + ATTEMPTS):
        if not site.kill(maintain, {phase}, seconds):
            seconds /= 2
            continue
        assert compare(site.expected(), site.published) == []
        site.deliver()
        site.forks.run(*build)
        code, said = site.forks.said(*maintain)
        assert code == 0, said
        assert "The sums hold\nRaw and store agree: " in said and "built again from raw, is as published" in said
        assert not list((site.warehouse / "build").glob("rebuild-*"))
        site.check_readers()
        if site.has_killed(phase) == ROUNDS:
            break
    site.check_end(phase)


def hour(at: datetime, latencies_us: list[float]) -> list[dict]:
    """An hour of drives d0, d1, ... of one RAID group."""
    return [
        dict.fromkeys(SCHEMAS["drive_hours"])
        | {"hour_utc": at, "drive_id": f"d{drive}", "raid_group_id": "g", "read_ios": 10, "write_ios": 0, "read_latency_us": latency}
        for drive, latency in enumerate(latencies_us)
    ]


def inventory(kind: str, minute: int, first_role: str = "data") -> list[dict]:
    """Five drives as inventory said at that minute of a day later."""
    stated = {"raid_group_id": "g", "kind": kind, "collected_at": datetime(2026, 1, 6, 3, minute)}
    return [
        dict.fromkeys(SCHEMAS["drives"]) | stated | {"drive_id": f"d{drive}", "role": "data" if drive else first_role} for drive in range(5)
    ]


def differences_after_kills(folder: Path, deliveries: list[tuple[str | None, Records]], *options: str) -> list[str]:
    """Land each delivery and build, killed first where a phase is named; what the marts then differ in from the reference."""
    warehouse, forks, folders = folder / "warehouse", Forks(folder / "forks"), []
    for number, (phase, records) in enumerate(deliveries):
        folders.append(write_bundle(records, folder / f"delivery-{number}", "parquet"))
        forks.run("ingest", "bundle", folders[-1], "--warehouse", warehouse)
        if phase is not None:
            forks.start("build", *options, "--warehouse", warehouse, phase=phase, step=0)
            assert forks.finish()[0] == -signal.SIGKILL, number
        if phase == "stored":  # and left as it is
            assert len(list(warehouse.glob("store/int_drive_hours/*/*.parquet"))) == 2
        else:
            forks.run("build", *options, "--warehouse", warehouse)
            if found := compare(compute(folders), warehouse / "warehouse.duckdb"):
                return [f"delivery {number}", *found]
    return []


def test_a_change_of_a_killed_build_that_was_undone_is_computed_again(tmp_path: Path) -> None:
    """To the next build every drive is what it was in the last one that finished; yet a day is stored as if it were not."""
    hours = [row for number in range(3) for row in hour(datetime(2026, 1, 5, number), [500.0 * (1 + drive) for drive in range(5)])]
    deliveries: list[tuple[str | None, Records]] = [
        (None, (hours, inventory("ssd", 0), [])),
        ("stored", ([], inventory("ssd", 1, "spare"), [])),
        (None, ([], inventory("ssd", 2), [])),
    ]
    assert differences_after_kills(tmp_path, deliveries, "--daily") == []


@pytest.mark.proof
def test_daily_relations_are_made_by_the_build_after_a_killed_one(tmp_path: Path) -> None:
    """A day that is over changes, by a row or an event that came late, or drives change their kind; the builds are the hourly ones."""

    def slow(number: int, latency_us: float) -> list[dict]:
        return hour(datetime(2026, 1, 5) + timedelta(hours=number), [latency_us, *[500.0] * 4])

    event = {"drive_id": "d0", "event_type": "media_error", "occurred_at": datetime(2026, 1, 5, 21, 30)}
    deliveries: list[tuple[str | None, Records]] = [
        (None, ([row for number in range(21, 27) for row in slow(number, 500.0 * (1 + number % 3))], inventory("disk", 0), [])),
        ("made", (slow(20, 5000.0), [], [])),
        ("made", ([], [], [dict.fromkeys(SCHEMAS["drive_events"]) | event])),
        ("made", ([], inventory("ssd", 1), [])),
        ("relations", (slow(19, 5000.0), [], [])),
        ("swap", (slow(18, 5000.0), [], [])),
    ]
    assert differences_after_kills(tmp_path, deliveries) == []


KILLED_REPORT = """
import os, signal, sys
from pathlib import Path
from engine.warehouse import Warehouse
from report.weekly.write import write_report

root, page, suffix = sys.argv[1:]
replace = os.replace
os.replace = lambda old, new: os.kill(os.getpid(), signal.SIGKILL) if str(new).endswith(suffix) else replace(old, new)
write_report(Warehouse(Path(root)), out=Path(page))
"""


@pytest.mark.proof
@pytest.mark.parametrize("suffix", [".json", ".html"])
def test_a_killed_report_keeps_the_last_page_and_leaves_nothing_else(suffix: str, tmp_path: Path) -> None:
    page = tmp_path / "week.html"
    page.write_text("the last page")
    for killed_at, code in ((suffix, -signal.SIGKILL), ("never", 0)):
        done = subprocess.run([sys.executable, "-c", KILLED_REPORT, awkward_fleet().root, page, killed_at], env=environment(), check=False)
        assert done.returncode == code
        assert (page.read_text() == "the last page") == (code != 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["week.html", "week.json"]


@pytest.mark.soak
@pytest.mark.xdist_group("killed-2")
def test_a_killed_publication_is_the_last_one_or_the_next(site: Site) -> None:
    """Killed while it is written, the same build again in the swap, and again in the clean-up; then run to the end."""
    build = ("build", "--daily", *site.option)
    site.deliver()
    seconds = site.seconds(build)["publish"]
    for _ in range(4):
        # a reader may hold the only publication that is old enough: then there is nothing to clean up yet
        site.deliver()
        age(site.warehouse)
        taken = site.forks.run(*build)
        if REMOVALS & set(taken["clean-up"]):
            break
    swaps, cleanings = (
        site.steps_around(taken["swap"], "os.link", "os.rename"),
        site.steps_around(taken["clean-up"], *REMOVALS),
    )
    for _ in range(ROUNDS + ATTEMPTS):
        before = site.expected()
        site.deliver()
        after = site.expected()
        age(site.warehouse)
        if not site.kill(build, {"publish"}, seconds):
            site.forks.run(*build)
            seconds /= 2
            continue
        assert compare(before, site.published) == []
        assert site.kill_at_step(build, "swap", next(swaps))
        assert compare(after, site.published) == [] or compare(before, site.published) == []
        age(site.warehouse)
        step = next(cleanings)
        while not site.kill_at_step(build, "clean-up", step):
            # a clean-up has fewer steps when less is old, and this one ended before that step: take a step it had, in another build
            age(site.warehouse)
            step = site.rng.randrange(len(site.forks.steps()["clean-up"]))
        assert compare(after, site.published) == [], "a publication that was swapped in has gone again"
        site.forks.run(*build)
        assert compare(after, site.published) == []
        site.check_readers()
        if site.has_killed("publication") == ROUNDS:
            break
    site.check_end("publication")


def age(warehouse: Path) -> None:
    """Make the publications look old, so that a clean-up has something to remove."""
    then = time.time() - AGED_SECONDS
    for path in (warehouse / "publications").glob("*.duckdb"):
        os.utime(path, (then, then))
