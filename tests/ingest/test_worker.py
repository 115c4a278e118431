"""A file that ends the process it is read in, or takes too much of it: that is its outcome, in a line; the other files land."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest import StoreError, Worker
from ingest.reading.files import Watch
from ingest.reading.limits import Limits
from tests.ingest.conftest import HOURS_HEADER, csv_text
from tests.ingest.harm import HARM, harm
from tests.ingest.test_malformed import encrypted_parquet

SETTINGS = '[deliveries]\nseconds = 4\nmemory = "300MB"\n'


def hours(number: int) -> str:
    return csv_text(f"2026-01-05T10:00:00Z,d{number},g,10,5,100.0,50.0")


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.ingest.harm", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=Path(__file__).parents[2])


def run(*arguments: object) -> tuple[int, str]:
    """A command. Returns: its exit code, and what it printed."""
    process = start(*arguments)
    said, _ = process.communicate(timeout=180)
    return process.returncode, said


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    made = tmp_path / "warehouse"
    made.mkdir()
    (made / "drivetail.toml").write_text(SETTINGS)
    return made


def landed(warehouse: Path) -> set[str]:
    files = [pl.read_parquet(file, columns=["drive_id"], glob=False) for file in warehouse.glob("raw/deliveries/*/drive_hours/*.parquet")]
    return set(pl.concat(files)["drive_id"]) if files else set()


def check(said: str, warehouse: Path, harmful: dict[str, str], good: set[str]) -> None:
    """Each harmful file (by the end of its name, with the kind of harm) has one line that says so; the good ones have landed."""
    for name, how in harmful.items():
        (line,) = [line for line in said.splitlines() if line.startswith("note: ") and name in line]
        assert HARM[how][1] in line, line
    assert landed(warehouse) == good
    assert list((warehouse / "raw" / ".staging").iterdir()) == []
    assert "Traceback" not in said


def test_any_mix_of_harmful_files_lands_all_others(tmp_path: Path, warehouse: Path) -> None:
    """In any order, as CSV and as Parquet, which is copied, of a folder and in archives, of which some are harmful to unpack."""
    seed = int(os.environ.get("DRIVETAIL_HARM_SEED", "0")) or random.randrange(1, 1_000_000)
    print(f"repeat the draw with DRIVETAIL_HARM_SEED={seed}")
    rng = random.Random(seed)
    kinds = [*rng.sample(sorted(HARM), 4), *["fine"] * 4]
    rng.shuffle(kinds)
    folder, packed = tmp_path / "in" / "drive_hours", zipfile.ZipFile(tmp_path / "more.zip", "w")
    folder.mkdir(parents=True)
    harmful, good = {}, set()
    for number, kind in enumerate(kinds):
        name, text = f"{kind}-{number}", hours(number)
        match rng.choice(["CSV", "Parquet", "member", "archive"]):
            case "CSV":
                (folder / f"{name}.csv").write_text(text)
            case "Parquet":
                pl.read_csv(io.StringIO(text), try_parse_dates=True).write_parquet(folder / f"{name}.parquet")
            case "member":
                packed.writestr(f"drive_hours/{name}.csv", text)
            case "archive":
                with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as tarred:
                    member = tarfile.TarInfo(f"drive_hours/in-{number}.csv")
                    member.size = len(text)
                    tarred.addfile(member, io.BytesIO(text.encode()))
        if kind == "fine":
            good.add(f"d{number}")
        else:
            harmful[name] = kind
    packed.writestr("drive_hours/one.csv", hours(99))
    packed.close()
    (folder / "one.csv").write_text(hours(98))
    code, said = run("ingest", "bundle", folder.parent, *tmp_path.glob("*.zip"), *tmp_path.glob("*.tar.gz"), "-w", warehouse)
    assert code == 1, said
    check(said, warehouse, harmful, {*good, "d98", "d99"})


def test_parquet_that_ends_or_fills_the_process_is_an_outcome(tmp_path: Path, warehouse: Path) -> None:
    """Arrow aborts over an encrypted column, for which the command here does not look before; a text of 4 kB comes a million times."""
    (tmp_path / "in").mkdir()
    sound = io.BytesIO()
    pl.read_csv(io.StringIO(hours(2)), try_parse_dates=True).write_parquet(sound)
    (tmp_path / "in" / "drive_hours.parquet").write_bytes(encrypted_parquet(sound.getvalue()))
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), pa.array(["x" * 4000]))
    table = pa.table(dict.fromkeys(HOURS_HEADER.split(","), texts))
    pq.write_table(table, tmp_path / "in" / "drive_hours_long.parquet", compression="zstd")
    (tmp_path / "in" / "drive_hours.csv").write_text(hours(1))
    (warehouse / "drivetail.toml").write_text('[deliveries]\nmemory = "300MB"\n')
    code, said = run("ingest", "bundle", tmp_path / "in", "-w", warehouse)
    assert code == 1 and "drive_hours.parquet: reading it ended the process (signal 6, Aborted)" in said
    assert "drive_hours_long.parquet: reading it takes more than 300MB of memory" in said
    assert landed(warehouse) == {"d1"}


def test_files_that_a_source_combines_are_read_apart_as_well(tmp_path: Path, warehouse: Path) -> None:
    """Logs of hosts, all read before anything of them is made: two siblings of other forms, one of a source with its own reader."""
    folder = tmp_path / "in"
    for host, name in (("web1", "aborts.log"), ("web2", "kernel.log"), ("web3", "loops.log")):
        (folder / host).mkdir(parents=True)
        (folder / host / name).write_text(
            f"Jan  5 10:00:00 {host} kernel: blk_update_request: critical medium error, dev sda, sector 7 op 0x0:(READ)\n"
        )
    code, said = run("ingest", "kernel-log", folder, "--year", "2026", "--timezone", "UTC", "-w", warehouse)
    check(said, warehouse, {"web1/aborts.log": "aborts", "web3/loops.log": "loops"}, set())
    assert code == 1
    assert "2 of 3 files could not be read, the others have landed" in said
    assert len(list(warehouse.glob("raw/deliveries/*/drive_events*.parquet"))) == 1


def test_an_inbox_lands_the_others_and_tries_again_what_may_pass(tmp_path: Path, warehouse: Path) -> None:
    """An entry that the system killed is new again; one that aborts, or exceeds a limit, waits for somebody."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (warehouse / "drivetail.toml").write_text(f'{SETTINGS}[[inboxes]]\nname = "f"\nsource = "bundle"\nfolder = "{inbox}"\n')
    for number, name in enumerate(("aborts", "is-killed", "loops", "fine")):
        entry = inbox / f"{name}-{number}"
        entry.mkdir()
        (entry / "drive_hours").mkdir()
        (entry / "drive_hours" / f"{name}.csv").write_text(hours(number))
        for path in (entry / "drive_hours" / f"{name}.csv", entry / "drive_hours", entry):
            os.utime(path, (time.time() - 3600,) * 2)
    code, said = run("inbox", "--land", "-w", warehouse)
    assert code == 1 and landed(warehouse) == {"d3"}
    assert "signal 6, Aborted" in said and "longer than 4 s" in said
    assert "signal 9, Killed" in said and "it is tried again" in said
    code, said = run("inbox", "--land", "-w", warehouse)
    assert code == 1 and "is-killed" in said and "aborts" not in said and "loops" not in said


def test_a_raised_limit_reads_a_file_again(tmp_path: Path, warehouse: Path) -> None:
    file = tmp_path / "drive_hours-1.csv"
    # one row, often enough that no process has read it before another looks at the clock
    file.write_text(hours(1) + hours(1).splitlines(keepends=True)[-1] * 100_000)
    (warehouse / "drivetail.toml").write_text("[deliveries]\nseconds = 0.000001\n")
    for _ in range(2):
        code, said = run("ingest", "bundle", file, "-w", warehouse)
        assert code == 1 and "raise `seconds` of [deliveries]" in said, said
    (warehouse / "drivetail.toml").write_text(SETTINGS)
    code, said = run("ingest", "bundle", file, "-w", warehouse)
    assert code == 0 and landed(warehouse) == {"d1"}, said


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=lambda how: how.name)
def test_a_command_that_is_ended_leaves_no_process_and_no_delivery(how: signal.Signals, tmp_path: Path, warehouse: Path) -> None:
    (warehouse / "drivetail.toml").unlink()  # the file may take its time
    file = tmp_path / "drive_hours-1.csv"
    file.write_text(hours(1))
    waits = tmp_path / "waits" / "drive_hours"
    waits.mkdir(parents=True)
    (waits / "waits.csv").write_text(hours(2))
    process = start("ingest", "bundle", file, waits.parent, "-w", warehouse)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 60
    while not list(warehouse.glob("raw/.staging/*")) or not children.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = [int(child) for child in children.read_text().split()]
    time.sleep(0.5)
    process.send_signal(how)
    process.wait(30)
    while any(is_running(worker) for worker in workers):
        assert time.monotonic() < deadline, "its worker still runs"
        time.sleep(0.05)
    assert landed(warehouse) == set()
    assert run("ingest", "bundle", file, "-w", warehouse)[0] == 0
    assert landed(warehouse) == {"d1"}
    assert list((warehouse / "raw" / ".staging").iterdir()) == []


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# of a process in which polars has run, as here: the worker is a new interpreter


def opens(files: list[str], between: str, *, on_progress: Callable[[str, int, int], None], watch: Watch) -> dict[str, str]:
    """Harm of each name while it is open, and of `between` while none is. Returns: those that were lost before, with their fault."""
    for file in files:
        if file not in watch.lost:
            with watch.over(file):
                harm(file)
        on_progress("read", 1, 1)
    harm(between)
    return {file: about["fault"] for file, about in watch.lost.items()}


def refuses(*, on_progress: Callable[[str, int, int], None], watch: Watch) -> None:
    pl.DataFrame({"a": [1]}).lazy().select(pl.col("a").sort()).collect()
    raise StoreError("no room")


@pytest.mark.usefixtures("worker")
def test_a_worker_of_a_process_with_threads_is_a_new_one() -> None:
    refused: Any = None
    pl.DataFrame({"a": [1]}).lazy().select(pl.col("a").sort()).collect()
    seen: list[tuple[str, int, int]] = []
    with Worker(Limits(60.0, "1GB")) as worker:
        lost = worker.call(opens, ["fine", "aborts", "leaves", "good"], "", on_progress=lambda *each: seen.append(each))
        assert list(lost) == ["aborts", "leaves"] and all("reading it ended the process" in fault for fault in lost.values())
        assert ("read", 1, 1) in seen
        try:
            worker.call(refuses)
        except StoreError as error:
            refused = error
        assert str(refused) == "no room" and "refuses" in str(refused.__cause__)
        with pytest.raises(StoreError, match=r"the process that did it ended \(signal 6, Aborted\)"):
            worker.call(opens, ["fine"], "aborts")
        assert worker.call(opens, ["fine"], "") == {}
