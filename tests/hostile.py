"""A fleet whose every name tries to be something else: markup, SQL, a command of the terminal, an address. For report/ and safety/."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drivetail.cli import main
from engine.warehouse import Warehouse
from tests.golden import golden

HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"
START = datetime(2026, 1, 5)
HOURS = 30

SLOW = "</script><script>alert(1)</script>"
DRIVES = [
    SLOW,
    "'; drop table marts.x; --",
    "\"); attach '/tmp/drivetail_attacked.db'; --",
    "d\x1b]0;owned\x07\x1b[2J\nnothing needs an operator",
    "http://localhost:9/drive.csv",
    "read_text('/etc/passwd')",
    "=cmd|' /C calc'!A0",
    "d\u202egnp.exe\u2066x",
]
GROUP = "g'\"><img src=x onerror=alert(2)>"
MODEL = "</td></table><b onmouseover=alert(3)>{{ 7 * 7 }}</b><a href='javascript:alert(4)'>&amp;"
DETAIL = "<svg onload=alert(5)>"
FILES = {
    "hours": "drive_hours'; drop table x; --<script>alert(6)<\\script>.csv",
    "drives": 'drives*["]\n<img src=x onerror=alert(7)>.csv',
    "events": "http:/localhost:9/drive_events?.csv",
}
PASSPHRASE = "drivetail-test-secret-6f1d"


@dataclass(frozen=True)
class Attacked:
    """The warehouse, its delivery, and what the commands printed."""

    warehouse: Warehouse
    bundle: Path
    printed: str

    @property
    def report(self) -> Path:
        """The report of its only week."""
        return self.warehouse.root / "reports" / "2026-W02.html"


def drivetail(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def cell(text: str) -> str:
    """A CSV cell."""
    return '"' + text.replace('"', '""') + '"'


def attacked_fleet() -> Attacked:
    """The fleet, built once for all tests."""
    root = golden("attacked_fleet", build_fleet, also=("drivetail", "report"))
    return Attacked(Warehouse(root / "ware'house"), root / "bundle", (root / "printed").read_text())


def build_fleet(root: Path) -> None:
    """Land with the gate, build, report, and keep what was printed; a quote in the warehouse's own name, a secret in the environment."""
    bundle = root / "bundle"
    rows = [
        f"{(START + timedelta(hours=hour)).isoformat()},{cell(drive)},{cell(GROUP)},1000,0,"
        f"{900 if drive == SLOW and hour > 2 else 100 + place},"
        for hour in range(HOURS)
        for place, drive in enumerate(DRIVES)
    ]
    rows.append(f"2026-01-05T00:00:00,{cell(SLOW)},{cell(GROUP)},-1,0,1,")
    inventory = [f"{cell(drive)},{cell(GROUP)},data,disk,{cell(MODEL)},{cell(MODEL)}" for drive in DRIVES]
    events = [
        f"2026-01-05T{hour}:10:00,{cell(SLOW)},{kind},{cell(DETAIL)}" for hour, kind in ((10, "unplug"), (11, "replug"), (12, cell(DETAIL)))
    ]
    for name, lines in {
        "hours": [HEADER, *rows],
        "drives": ["drive_id,raid_group_id,role,kind,model,vendor", *inventory],
        "events": ["occurred_at,drive_id,event_type,detail", *events],
    }.items():
        path = bundle / FILES[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    warehouse = Warehouse(root / "ware'house")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", PASSPHRASE)
        landed = drivetail("ingest", "bundle", bundle, "--gate", "-w", warehouse.root)
        assert landed.exit_code == 0, landed.output
        built = drivetail("build", "-w", warehouse.root)
        assert built.exit_code == 0, built.output
        reported = drivetail("report", "-w", warehouse.root)
    assert reported.exit_code == 0, reported.output
    (root / "printed").write_text(landed.output + built.output + reported.output)
