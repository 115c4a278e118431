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
        # what looks at weeks takes longer, and is made when alerts are out
        ("build", "--no-daily"),
        ("alerts", "--notify" if settings.notify else "--new"),
        *([("alerts", "--hosts")] if settings.collect.file else []),
        *([("metrics", "--out", str(metrics))] if metrics else []),
        ("build",),
        ("report", "--due"),
        ("status", "--check"),
    ]


def run_hour(warehouse: Warehouse) -> Iterator[str]:
    """Run each step in a process of its own; yields those that failed. Raises: SettingsError."""
    for step in steps(load_settings(warehouse)):
        command = " ".join(("drivetail", *step))
        click.echo(f"$ {command}")
        sys.stdout.flush()
        # -P: no package of the folder that this is run in
        if subprocess.run([sys.executable, "-P", "-m", "drivetail", *step, "-w", str(warehouse.root)]).returncode:
            yield command
