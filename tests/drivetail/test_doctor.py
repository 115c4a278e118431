"""The doctor says what a server or a folder cannot tell, and what to do, before anything lands."""

from __future__ import annotations

import socket
import time
from datetime import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.thresholds import variables
from ingest.contract.findings import Inventory, group_findings
from ingest.sources.prometheus import client as client_module
from ingest.sources.prometheus.doctor import _Doctor
from ingest.sources.prometheus.pull import Selection
from tests.ingest.prometheus_server import Server, serving


def scraped(value: int, at: int) -> str:
    """The counters of two drives, all of one value."""
    counters = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds")
    return "".join(f'node_disk_{name}_total{{device="{device}"}} {value} {at}\n' for device in ("sda", "sdb") for name in counters)


def doctor(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["doctor", *map(str, arguments)], terminal_width=400)
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [(401, b"", "set DRIVETAIL_PROMETHEUS_TOKEN"), (200, b"<html>", "is this a Prometheus-compatible server"), (503, b"starting", "503")],
)
def test_a_server_that_does_not_answer_is_missing(status: int, body: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRIES", 0)
    with serving(Server({}, lambda *_: (status, {}, body))) as server:
        code, output = doctor("prometheus", server.url)
    assert code == 1 and said in output


def test_a_mapping_is_believed_before_the_group_that_rows_name() -> None:
    inventory = Inventory({"S1": "md0", "S2": "pool-9"}, {"web1/sda": "S1"}, {"S2": "pool-9"})
    assert inventory.group_of("web1/sda") == "md0"
    assert inventory.group_of("web1/sda", named="pool-a") == "pool-a"
    assert inventory.group_of("S2", named="pool-a") == "pool-9"


def test_files_are_tried_and_nothing_lands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "web1"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    (folder / "a.prom").write_text(scraped(1, 1_767_607_200_000) + scraped(2, 1_767_610_800_000))
    code, output = doctor("prometheus", folder)
    assert code == 1  # two drives have no peers, so nothing could be compared
    assert "all 1 can be read" in output and "all 4 rows can be used" in output and "fewer than 3 drives: web1" in output
    assert "2 of 2 drives have no known RAID group" in output and "2 of 2 drives have no serial number" in output
    assert [path.name for path in tmp_path.iterdir()] == ["web1"]
    third = scraped(1, 1_767_607_200_000).splitlines()[:4]  # a drive more: then there are peers
    for at, value in ((1_767_607_200_000, 1), (1_767_610_800_000, 2)):
        with (folder / "a.prom").open("a") as out:
            out.writelines(line.rpartition("}")[0].replace("sda", "sdc") + f"}} {value} {at}\n" for line in third)
    mapping = tmp_path / "drives.csv"
    mapping.write_text("host,device,drive_id,raid_group_id\n" + "".join(f"web1,sd{n},S{n},pool\n" for n in "abc"))
    assert CliRunner().invoke(main, ["map", str(mapping), "-w", str(tmp_path / "mapped")]).exit_code == 0
    assert doctor("prometheus", folder)[0] == 0
    code, output = doctor("prometheus", folder, "-w", tmp_path / "mapped")
    assert code == 0 and "all 3 drives have a name of their own" in output and "3 drives in 1 group" in output
    (folder / "a.prom").write_text("nothing")
    code, output = doctor("prometheus", folder)
    assert code == 1 and "1 of 1 cannot be read" in output


def test_files_are_tried_together_and_inventory_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "web1"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    for name, ios in (("a", 0), ("b", 900)):  # neither says anything alone
        (folder / f"diskstats-{name}").write_text(
            f"TS {1_767_607_200 + ios}\n" + "".join(f"8 0 sd{d} {ios} 0 8 9 0 0 0 0 0 0 0\n" for d in "abc")
        )
    code, output = doctor("diskstats", folder / "diskstats-a", folder / "diskstats-b")
    assert code == 0 and "rows can be used" in output and "3 of 3 drives have no serial number" in output
    code, output = doctor("diskstats", folder / "diskstats-a")
    assert code == 1 and "and nothing else" in output
    (folder / "ebs.json").write_text('{"total_read_ops":1,"TS":1767607200,"device":"nvme0n1"}')
    code, output = doctor("smartctl", folder / "ebs.json")
    assert code == 0 and "it has only health;" in output
    (folder / "ebs.json").unlink()
    uuid = "MD_LEVEL=raid5\nMD_DEVICES=3\nMD_UUID=aaaaaaaa:bbbbbbbb:cccccccc:dddddddd\n"
    members = "".join(f"MD_DEVICE_dev_sd{d}_ROLE={n}\nMD_DEVICE_dev_sd{d}_DEV=/dev/sd{d}\n" for n, d in enumerate("abc"))
    (folder / "mdadm-md0").write_text(f"TS 1767607200\n{uuid}{members}")
    code, output = doctor("mdadm", folder / "mdadm-md0")
    assert code == 0 and "it has only inventory;" in output and "3 drives in 1 group" in output and "every group has 3 drives" in output
    lsblk = ",".join(f'{{"name":"sd{d}","type":"disk","serial":"S{d}","size":1,"rota":true}}' for d in "abc")
    (folder / "lsblk.json").write_text(f'{{"TS":1767607200,"blockdevices":[{lsblk}]}}')
    code, output = doctor("lsblk", folder)
    assert code == 0 and "all 3 drives have a name of their own" in output and "3 of 3 drives have no known RAID group" in output
    # all of it: each part names what it knows of the others' drives
    for name in "ab":
        (folder / f"diskstats-{name}").unlink()
    looks = "".join(f"TS {1_767_607_200 + t}\n" + "".join(f"8 0 sd{d} {t} 0 8 9 0 0 0 0 0 0 0\n" for d in "abc") for t in (0, 900))
    (folder / "diskstats").write_text(looks)
    code, output = doctor("collected", folder)
    assert code == 0 and "lsblk files" in output and "diskstats rows" in output
    assert "all 3 drives have a name of their own" in output and "3 drives in 1 group" in output
    mapping = tmp_path / "drives.csv"
    mapping.write_text("drive_id,enclosure,valid_to,valid_from\nS1,shelf-3,,\nS2,shelf-3,2026-01-04,2026-01-05\n")
    code, output = doctor("mapping", mapping)
    assert code == 0 and "drives.csv, row 2: valid_to '2026-01-04': not after" in output and "datetime" not in output
    assert "it names no RAID group; each drive keeps" in output


@pytest.mark.parametrize(
    ("begins", "options"),
    [("Jan  5 11:00:00 web1 kernel:", "--year 2026 --timezone Europe/Berlin"), ("[12225.445412]", "--boot-time 2026-01-05T09:00:00")],
)
def test_the_options_of_an_ingest_are_those_of_the_doctor(begins: str, options: str, tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text(f"{begins} blk_update_request: critical medium error, dev sda, sector 9\n")
    assert "1 of 1 cannot be read" in doctor("kernel-log", tmp_path)[1]
    code, output = doctor("kernel-log", tmp_path, *options.split())
    assert code == 0 and "all 1 rows can be used" in output and "it has only events" in output


def test_where_nobody_listens_the_doctor_says_so_in_one_line_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "BACKOFF_SECONDS", 100)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        begun = time.monotonic()
        done = CliRunner().invoke(main, ["doctor", "prometheus", address])
    assert time.monotonic() - begun < 100, "it was tried again"
    (line,) = done.output.splitlines()
    assert done.exit_code == 1
    assert line.startswith(f"drivetail: {address} cannot be reached: ") and line.endswith("is the address right, and is the server up?")


@pytest.mark.parametrize("command", ["doctor", "ingest"])
@pytest.mark.parametrize("address", ["prometheus:9090", "127.0.0.1:9090/prometheus"])
def test_an_address_without_its_scheme_is_named(command: str, address: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [command, "prometheus", address, "-w", str(tmp_path / "warehouse")])
    assert done.exit_code in (1, 2)
    assert done.output.splitlines()[-1].endswith(
        f"{address}: no such file; a server's address begins with http:// or https://, as in http://{address}"
    )


def test_drives_that_are_not_judged_are_counted_by_host(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _Doctor(None, Selection(), datetime(2026, 1, 5), Inventory(kinds={"S4": "disk"}))  # type: ignore[arg-type]
    asked.drives = [{"instance": f"{host}:9100", "device": device} for host, device in (("hw1", "sda"), ("hw1", "sdb"), ("web1", "sda"))]
    asked.drives += [{"instance": "web1:9100", "device": device} for device in ("sdb", "sdc", "nvme0n1")]
    asked.infos = {("web1", "sdc"): "S4"}
    asked.described = {
        ("hw1", "sda"): {"model": "PERC_H740P_Mini", "rotational": "1"},
        ("hw1", "sdb"): {"model": "PERC_H740P_Mini", "rotational": "1"},
        ("web1", "sda"): {"model": "ST16000NM001G", "rotational": "0"},
        ("web1", "sdb"): {"model": "ST16000NM001G"},
    }
    (hidden,) = asked.hidden(variables()["raid_controller_models"])
    assert hidden.said == "2 logical drives of a RAID controller, so the drives behind it are not visible: hw1 (sda, sdb)"
    # the kind of web1/sdc is in the inventory, that of an NVMe drive in its name
    asked.members = [{"instance": "hw1:9100", "device": device, "md": "md0", "uuid": "5f1c:90ab"} for device in ("sda1", "sdb1")]
    (small,) = (one for one in asked.groups(3) if one.check == "peers")
    assert small.said.startswith("1 of 2 groups have fewer than 3 drives: hw1 md0; 2 drives")
    (kinds,) = asked.kinds()
    assert kinds.said.startswith("of 1 of 6 drives (web1: 1) the kind is unknown") and "--kind disk" in kinds.todo
    there = [({"instance": f"{host}:9100", "device": "sda"}, 1.0) for host in ("web1", "web8", "web9")]
    monkeypatch.setattr(asked, "vector", lambda query, at: [*there, ({"instance": "web9:9100", "device": "sdb"}, 1.0)])
    (silent,) = asked.silent()
    assert silent.said == "3 drives of a day ago that no host reports now (web8: 1, web9: 2)"
    (small,) = (one for one in group_findings({"hw1": 2, "web1": 4}, 0, 3) if one.check == "peers")
    assert small.said == "1 of 2 groups have fewer than 3 drives: hw1; 2 drives there are compared with nobody"
    assert "deploy/membership.sh" in small.todo
