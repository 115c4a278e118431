"""A bundle that grows run by run: what is in it stays, whatever ends the call."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from ingest.raw.durable import replace_file
from lab.bundle import MANIFEST_FILE, RUN_COLUMNS, RUNS_FILE, manifest_text
from lab.contract import LabError
from lab.run.machine import Target, machine

LOCK = ".drivetail-lab.lock"
"""In a folder that a run works in: the number of its process."""
PROTOCOL = re.compile(r"^# protocol = (.*)$", re.MULTILINE)
STARTED = re.compile(r'^started_at = "(.*)"$', re.MULTILINE)


class Recording:
    """The bundle in a folder; one that is there already must be of the same protocol, target and configurations."""

    def __init__(self, out: Path, protocol: str, kind: str, runs: int, target: Target, configs: list[dict[str, Any]], asked: str) -> None:
        self.out, self.target = out, target
        self.asked = json.dumps([protocol, str(target.folder), runs, [config["config_id"] for config in configs], asked])
        self.rows: list[dict[str, Any]] = []
        path = out / MANIFEST_FILE
        if path.exists():
            self.manifest = path.read_text(encoding="utf-8")
            found = PROTOCOL.search(self.manifest)
            if found is None or found[1] != self.asked:
                what = found[1] if found else "not of this command"
                raise LabError(f"{out}: holds another experiment ({what}); name a new folder with --out")
            if (out / RUNS_FILE).exists():
                with (out / RUNS_FILE).open(encoding="utf-8", newline="") as stream:
                    self.rows = list(csv.DictReader(stream))
        elif out.exists() and any(path.name != LOCK for path in out.iterdir()):
            raise LabError(f"{out}: is not empty and holds no {MANIFEST_FILE}; name a new folder with --out")
        else:
            self.manifest = _manifest(self.asked, protocol, kind, runs, target, configs)

    def has(self, listings: list[dict[str, Any]]) -> bool:
        """Whether the files of a step are in the bundle."""
        known = {row["file"] for row in self.rows}
        return all(row["file"] in known for row in listings)

    def begin(self) -> None:
        """Write the manifest, and runs.csv as far as it goes."""
        if not (self.out / MANIFEST_FILE).exists():
            replace_file(self.out / MANIFEST_FILE, self.manifest)
        self._write_runs()

    def keep(self, files: dict[str, bytes], listings: list[dict[str, Any]]) -> None:
        """Write the files of a step, then its rows of runs.csv."""
        for name, content in files.items():
            replace_file(self.out / name, content)
        began = STARTED.search(self.manifest)
        for row in listings:
            if "zero_at" in row and began is not None:
                row["offset_s"] = round(row["zero_at"] - datetime.fromisoformat(began[1]).timestamp(), 6)
        self.rows += listings
        self._write_runs()

    def _write_runs(self) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, RUN_COLUMNS, restval="", lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(self.rows)
        replace_file(self.out / RUNS_FILE, text.getvalue())


def _manifest(asked: str, protocol: str, kind: str, runs: int, target: Target, configs: list[dict[str, Any]]) -> str:
    now = time.gmtime()
    host = re.sub(r"[^A-Za-z0-9._-]", "-", str(machine().get("name", "host")))[:30]
    keys = {
        "experiment_id": f"{protocol}-{host}-{time.strftime('%Y%m%d-%H%M%S', now)}", "kind": kind, "expected_runs": runs,
        "title": f"{protocol} on {target.mount_point} ({target.filesystem})", "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
        **{f"machine.{name}": value for name, value in machine().items()},
    }  # fmt: skip
    device = {
        "device_id": "target", "kind": target.kind, "kernel_name": target.kernel_name, "major_minor": target.major_minor,
        "model": target.model, "serial": target.serial, "capacity_bytes": target.capacity_bytes,
    }  # fmt: skip
    filesystem = {
        "filesystem_id": "target", "device_id": "target", "type": target.filesystem, "block_bytes": target.block_bytes,
        "partition_start_sectors": target.partition_start_sectors, "mount_options": target.mount_options,
        "mount_point": target.mount_point,
    }  # fmt: skip
    placed = [{"filesystem_id": "target", **config} for config in configs]
    return f"# protocol = {asked}\n{manifest_text(keys, devices=[device], filesystems=[filesystem], configs=placed)}"
