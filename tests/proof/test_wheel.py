"""The wheel, installed into an empty virtual environment far from the checkout: it holds one package, and its commands work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = which(str(ROOT / ".uv" / "bin" / "uv")) or which("uv")
FOREIGN = ("engine", "ingest", "quality", "report", "simulate", "lab", "study", "models")

pytestmark = [
    pytest.mark.proof,
    pytest.mark.xdist_group("wheel"),
    pytest.mark.skipif(UV is None, reason="uv is not installed; `make` installs it"),
]


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("DRIVETAIL", "PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run([*map(str, command)], cwd=cwd, env=variables | environment, capture_output=True, text=True, timeout=3600)


def uv(*arguments: object) -> str:
    done = run(UV, *arguments, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass
class Installed:
    """A virtual environment with the wheel and the versions of uv.lock, and a folder to work in that has packages named like ours."""

    wheel: Path
    prefix: Path
    folder: Path

    def drivetail(self, *arguments: object, **variables: str) -> tuple[int, str]:
        """Exit code and output of a command that is run there."""
        environment = {"PYTHONPATH": str(self.folder), "DRIVETAIL_WAREHOUSE": "warehouse", **variables}
        done = run(self.prefix / "bin" / "drivetail", *arguments, cwd=self.folder, **environment)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    root = tmp_path_factory.mktemp("wheel")
    checkout = root / "checkout"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    # nothing is compiled there: a build of its own does all that `make wheel` does
    uv("build", "--quiet", "--wheel", "--out-dir", root / "dist", checkout)
    (wheel,) = (root / "dist").glob("*.whl")
    locked = root / "locked.txt"
    locked.write_text(uv("export", "--quiet", "--frozen", "--no-emit-project", "--no-dev", "--no-hashes"))
    uv("venv", "--quiet", "--python", sys.executable, root / "venv")
    uv("pip", "install", "--quiet", "--python", root / "venv" / "bin" / "python", "--constraint", locked, wheel)
    folder = root / "folder"
    for name in FOREIGN:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise SystemExit('a package of somebody else')\n")
    return Installed(wheel, root / "venv", folder)


def test_the_wheel_has_one_package_and_no_model_of_the_user(installed: Installed) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"drivetail", "drivetail-0.1.0.dist-info", "drivetail-0.1.0.data"}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    folders = (
        "analyses", "console", "engine", "ingest", "lab", "macros", "models", "quality", "report", "seeds", "simulate",
        "study", "tests/assert_", "tests/generic",
    )  # fmt: skip
    ours = {
        name
        for name in tracked
        if name.startswith(folders) or name in (".dbtignore", "dbt_project.yml", "docs/cookbook.md", "profiles.yml")
    }
    left_out = ("lab/docs/", "lab/tests/", "lab/bench.py", "study/docs/", "study/tests/", "study/calibration.py")
    ours = {name for name in ours if not name.startswith(left_out)}
    ours |= {f"target/compiled/{project}duckdb.json" for project in ("", "lab/", "study/")}
    assert {name.removeprefix("drivetail/_project/") for name in names if "/_project/" in name} == ours
    share = installed.prefix / "share"
    for name in (
        "drivetail/dags/drivetail_hourly.py",
        "drivetail/deploy/membership.sh",
        "drivetail/docs/install.md",
        "man/man1/drivetail.1",
    ):
        assert (share / name).is_file()
    assert os.access(share / "drivetail/deploy/airflow.sh", os.X_OK)


def test_commands_work_beside_packages_of_the_same_names_without_dbt(installed: Installed) -> None:
    """The wheel brings the models compiled, as they are; dbt is an extra."""
    for command, said in {
        "simulate --out fleet --disk-groups 3 --ssd-groups 1 --days 8": "Next: drivetail ingest",
        "ingest bundle fleet": "0 rejected",
        "build": "Built ",
        "report": "Report: ",
        "alerts": "",
        "candidates": "",
        "status": "",
        "study": "Finding 1 ",
        "what-if --worst 1": "",
        "toleraid run --requests 1000": "adaptive",
        "lab simulate sync-writes --out experiment": "Bundle: ",
        "lab ingest experiment": "0 refused",
        "metrics": "drivetail_problems",
    }.items():
        code, output = installed.drivetail(*command.split())
        assert code == 0 and said in output, f"{command}: {code}: {output}"
    code, output = installed.drivetail("sql", "--format", "csv", "select count(*) as days from study.fct_fleet_coverage")
    assert (code, output.splitlines()[0]) == (0, "days")
    module = run(installed.prefix / "bin" / "python", "-m", "drivetail", "--version", cwd=installed.folder)
    assert module.stdout.startswith("drivetail, version ")
    assert not [*installed.prefix.glob("lib/*/site-packages/dbt*")]


def test_a_users_own_package_stays_the_users(installed: Installed) -> None:
    """Before and after `import drivetail`, a notebook's `report` is its own."""
    (installed.folder / "analysis").mkdir()
    for name in FOREIGN:
        (installed.folder / "analysis" / f"{name}.py").write_text("mine = True\n")
    for order in ("drivetail", f"{', '.join(FOREIGN)}, drivetail"):
        script = f"import {order}\nimport {', '.join(FOREIGN)}\nassert all(each.mine for each in ({', '.join(FOREIGN)}))"
        done = run(installed.prefix / "bin" / "python", "-c", script, cwd=installed.folder / "analysis")
        assert done.returncode == 0, done.stderr


def test_a_command_without_its_extra_names_it(installed: Installed) -> None:
    (installed.folder / "bundle").mkdir()
    (installed.folder / "bundle" / "drive_hours.csv").write_text(
        "hour_utc,drive_id,raid_group_id,read_ios,write_ios,latency_us\n2026-01-05T00:00:00,d1,g1,10,10,100\n"
    )
    code, output = installed.drivetail("ingest", "bundle", "bundle", "--gate", "-w", "gated")
    assert code == 1 and len(output.splitlines()) == 1 and "install drivetail[gate]" in output, output
    (installed.folder / "own").mkdir()
    (installed.folder / "own" / "drives.sql").write_text("select 1 as x\n")
    said_of_models = installed.drivetail("build", "--full-refresh", DRIVETAIL_CUSTOM_MODELS=str(installed.folder / "own"))[1]
    assert "install drivetail[models]" in said_of_models, said_of_models
    for said in (output, installed.drivetail("serve")[1], said_of_models):
        (command,) = re.findall(r"`uv (pip install [^`]*)`", said)
        assert installed.wheel.as_uri() in command
        assert uv(*shlex.split(command), "--dry-run") == ""


def test_the_commands_of_the_page_on_installing_work(installed: Installed, tmp_path: Path) -> None:
    """Each in a folder of its own, in the place of /opt, /srv and /etc. Commands that need root are left out, but for
    the drivetail command after `runuser`.
    """
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    lines = [line.partition("   ")[0] for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    (tmp_path / "dist").mkdir()
    shutil.copy(installed.wheel, tmp_path / "dist")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    done = []
    for line in lines:
        here = re.sub(r"(?<=[ /@\"])/(opt|srv|etc)/|^/(opt)/", lambda found: f"{tmp_path}/{found[1] or found[2]}/", line)
        here = (
            here.replace("/usr/bin/python3", sys.executable)
            .replace("runuser -u drivetail -- ", "")
            .replace("install -d -o drivetail", "mkdir -p")
        )
        here = re.sub("^uv ", f"{UV} ", here)
        if here.split()[0] not in ("make", "useradd", "systemctl", "journalctl"):
            shell = run("bash", "-c", here, cwd=tmp_path)
            assert shell.returncode == 0, f"{line}: {shell.stderr}"
            done.append(line.split()[0])
    assert done == ["uv", "uv", "/opt/drivetail/bin/drivetail", "install", "runuser", "cp"]
    assert (tmp_path / "srv/warehouse/drivetail.toml").is_file()
    services = [*(tmp_path / "etc/systemd/system").glob("*.service")]
    assert {service.stem for service in services} == {"drivetail-hourly", "drivetail-maintain"}
    for service in services:
        assert all(f"{place}\n" in f"{service.read_text()}\n" for place in ("User=drivetail", "DRIVETAIL_WAREHOUSE=/srv/warehouse"))


@pytest.mark.soak
def test_the_demo_and_the_documentation(installed: Installed) -> None:
    assert installed.drivetail("demo")[0] == 0
    code, output = installed.drivetail("docs", "--out", "tables.html")
    (command,) = re.findall(r"`uv (pip install [^`]*)`", output)
    assert code == 1 and "drivetail[models]" in command
    uv(*shlex.split(command), "--quiet")
    for project in ((), ("--project", "study")):
        code, output = installed.drivetail("docs", "--out", "tables.html", *project)
        assert code == 0, output
        assert (installed.folder / "tables.html").stat().st_size > 1_000_000
