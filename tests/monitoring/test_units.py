"""The units and containers that are shipped: hardened, and their commands run as they say."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.needs import require
from tests.proof.support import environment
from tests.webhook import free_port

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy" / "systemd"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NOBODY = 65534
IN_A_READ_ONLY_VIEW = """
mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro / && {
    touch "$1" 2>/dev/null && { echo "$1 can be written"; exit 90; }
    shift && exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
}
"""
"""As ProtectSystem=strict, ReadWritePaths=$0, User= and NoNewPrivileges= have it."""
HOURS = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us\n"


def service(name: str) -> configparser.SectionProxy:
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNITS / f"{name}.service")
    return unit["Service"]


@pytest.mark.parametrize("unit", sorted(path.name for path in UNITS.glob("*.service")))
def test_each_unit_is_hardened(unit: str) -> None:
    require("systemd-analyze")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(UNITS / unit)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert exposure is not None, told
    assert float(exposure[1]) <= 4


def test_each_timer_starts_a_unit_and_each_unit_calls_a_command_of_ours() -> None:
    for timer in UNITS.glob("*.timer"):
        assert timer.with_suffix(".service").exists()
    commands = {path.stem: service(path.stem)["ExecStart"].split()[0] for path in UNITS.glob("*.service")}
    assert set(commands.values()) == {
        "/opt/drivetail/bin/drivetail", "/opt/drivetail/share/drivetail/deploy/airflow.sh", "/usr/local/sbin/drivetail-membership"
    }  # fmt: skip


@pytest.fixture
def site() -> Iterator[Path]:
    """A folder of nobody's, with a warehouse, and an inbox that is somebody else's."""
    if os.geteuid():
        pytest.skip("needs root to become another user")
    with tempfile.TemporaryDirectory(prefix="drivetail-units-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "warehouse").mkdir()
        (folder / "inbox").mkdir()
        os.chown(folder / "warehouse", NOBODY, NOBODY)
        rows = "".join(f"2026-01-05T10:00:00,{drive},g1,9,0,70,\n" for drive in ("d1", "d2", "d3", "d4"))
        (folder / "inbox" / "drive_hours.csv").write_text(HOURS + rows)
        os.utime(folder / "inbox" / "drive_hours.csv", (0, 0))
        yield folder


@pytest.fixture
def python() -> str:
    """An interpreter that another user may run, with the packages of this one."""
    code = f"import sys, subprocess, drivetail, duckdb; assert sys.version_info[:2] == {sys.version_info[:2]}"
    code += "; subprocess.run([sys.executable, '-c', ''], check=True)"
    for each in (sys.executable, "/usr/bin/python3"):
        probe = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", each, "-c", code]
        if shutil.which("setpriv") and not subprocess.run(probe, env=with_packages(), capture_output=True).returncode:
            return each
    pytest.skip("another user may run no interpreter with these packages, or not read the checkout")


def with_packages() -> dict[str, str]:
    variables = environment()
    return {**variables, "PYTHONPATH": f"{variables['PYTHONPATH']}:{sysconfig.get_path('purelib')}", "HOME": "/nonexistent"}


def as_the_unit_says(site: Path, python: str, name: str) -> subprocess.CompletedProcess[str]:
    (_, *arguments) = service(name)["ExecStart"].split()
    assert service(name)["ReadWritePaths"] == "/srv/warehouse" and service(name)["ProtectSystem"] == "strict"
    variables = {**with_packages(), "DRIVETAIL_WAREHOUSE": str(site / "warehouse"), "TMPDIR": str(site / "warehouse")}
    view = ["unshare", "--mount", "sh", "-c", IN_A_READ_ONLY_VIEW, str(site / "warehouse"), str(site / "elsewhere")]
    command = [*view, python, "-P", "-m", "drivetail", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)


@pytest.mark.proof
def test_an_hour_and_a_night_of_a_plain_user_write_the_warehouse_alone(site: Path, python: str) -> None:
    settings = '[[inboxes]]\nname = "fleet"\nsource = "bundle"\nfolder = "../inbox"\n'
    (site / "warehouse/drivetail.toml").write_text(settings)
    os.chown(site / "warehouse/drivetail.toml", NOBODY, NOBODY)
    hour = as_the_unit_says(site, python, "drivetail-hourly")
    assert "Built 4 drive-hours" in hour.stdout and "Permission denied" not in hour.stderr, hour.stdout + hour.stderr
    night = as_the_unit_says(site, python, "drivetail-maintain")
    assert night.returncode == 0, night.stdout + night.stderr


def test_the_container_is_pinned_and_has_what_its_commands_need() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    assert re.search(r"^FROM \S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE) and "--require-hashes" in text and "HEALTHCHECK" in text
    (export,) = re.findall(r"\$\(UV\) export .*", (ROOT / "Makefile").read_text())
    assert {"console", "gate", "notify"} <= set(re.findall(r"--extra (\w+)", export))


def test_the_compose_file_says_nothing_that_compose_does_not_know() -> None:
    known = {"image", "build", "profiles", "command", "entrypoint", "environment", "ports", "volumes", "restart", "healthcheck"}
    assert set(COMPOSE) == {"services", "volumes"}
    for each in SERVICES.values():
        assert set(each) <= known and all(isinstance(word, str) for word in each["command"])
        assert {volume.split(":")[0] for volume in each["volumes"]} <= set(COMPOSE["volumes"])
        assert all(port.startswith("127.0.0.1:") for port in each.get("ports", ()))


@pytest.mark.proof
def test_each_command_of_the_compose_file_runs(tmp_path: Path) -> None:
    """One after the other, over folders in the place of the volumes."""
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for name, text in {"drivetail": f'exec {sys.executable} -P -m drivetail "$@"', "sleep": "kill $PPID"}.items():
        (stubs / name).write_text(f"#!/bin/sh\n{text}\n")
        (stubs / name).chmod(0o755)
    variables = {
        **environment(), "DRIVETAIL_WAREHOUSE": str(tmp_path / "warehouse"), "PATH": f"{stubs}:{os.environ['PATH']}",
        "DRIVETAIL_CONSOLE_TOKEN": "a token of a test, long enough",
    }  # fmt: skip

    def command(name: str, **changed: str) -> list[str]:
        words = [*SERVICES[name].get("entrypoint", ["drivetail"]), *SERVICES[name]["command"]]
        return [changed.get(word, word).replace("/collected", str(tmp_path / "collected")).replace("$$", "$") for word in words]

    def run(words: list[str]) -> str:
        done = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=600)
        assert done.returncode in (0, -15), done.stdout + done.stderr
        return done.stdout

    assert "Settings: " in run(command("init"))
    # endless, so it looks once; its second word is the time between looks
    assert "diskstats" in run([word for word in command("collect", **{"--every": "--once"}) if word != "60s"])
    for file in (tmp_path / "collected").rglob("*"):
        os.utime(file, (0, 0))
    assert "$ drivetail status --check" in run(command("hourly"))
    port = free_port()
    served = command("console", **{"0.0.0.0": "127.0.0.1", "http://127.0.0.1:8090": f"http://127.0.0.1:{port}"})
    with subprocess.Popen([*served, "--port", str(port)], env=variables) as console:
        try:
            assert answered(f"http://127.0.0.1:{port}/") == 401
        finally:
            console.terminate()


def answered(url: str) -> int:
    """The status of an answer without a token, as soon as there is one."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"{url}: no answer")
