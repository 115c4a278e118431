"""The hourly run where Airflow is not used: each step is a command, and none waits for the one before to succeed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click

from drivetail.service.settings import Settings, load_settings
from engine.warehouse import Warehouse


def steps(settings: Settings) -> list[tuple[str, ...]]:
    """The commands of an hour; alerts are printed where the settings name no receiver."""
    metrics = settings.metrics.file
    return [
        ("inbox", "--land"),
        # relations over weeks take longer: make them after the alerts are out
        ("build", "--no-daily"),
        ("alerts", "--notify" if settings.notify else "--new"),
        *([("alerts", "--hosts")] if settings.collect.file else []),
        *([("metrics", "--out", str(metrics))] if metrics else []),
        ("build",),
        ("report", "--due"),
        ("status", "--check"),
    ]


def run_hour(warehouse: Warehouse) -> Iterator[tuple[str, str]]:
    """Run each step in a process of its own; yields those that failed, each with the last that it said. Raises: SettingsError."""
    for step in steps(load_settings(warehouse)):
        command = " ".join(("drivetail", *step))
        click.echo(f"$ {command}")
        sys.stdout.flush()
        code, said = _run(step, warehouse)
        if code:
            yield command, said or f"exit code {code}"


def _run(step: tuple[str, ...], warehouse: Warehouse) -> tuple[int, str]:
    """Run a step. Returns: its exit code, and the last line that it wrote to stderr."""
    # -P: no package of the folder that this is run in
    command = [sys.executable, "-P", "-m", "drivetail", *step, "-w", str(warehouse.root)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        said = ""
        for line in process.stderr or ():
            sys.stderr.write(line)
            said = line.strip() or said
    return process.returncode, said.removeprefix("drivetail: ")
