"""dbt in this process: parsed once, then a fraction of a second per run."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
from collections import Counter
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import yaml

from engine.template import Template
from engine.warehouse import PROJECT, Warehouse


class ModelError(RuntimeError):
    """A model or a data test failed; the message names the first and says what it found."""


class Hindered(ModelError):
    """Room or memory is short, or somebody has the build database open: once that is over, the same work goes through."""


# writing the manifest after every command costs more than a small batch's models, and so does listing every relation before it
QUIET = ("--log-level", "none", "--log-level-file", "info", "--no-write-json", "--no-populate-cache")


CUSTOM = PROJECT / "models" / "custom"
"""Models of the people who use the warehouse; none of ours depends on them."""


def options(target: str, folder: Path, log: Path) -> list[str]:
    """Options of every dbt command; folder: where it writes what it compiles."""
    return [
        "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT), "--target", target,
        "--target-path", str(folder), "--log-path", str(log),
    ]  # fmt: skip


def models_version() -> str:
    """Changes when a definition does: SQL, seeds, thresholds. Descriptions do not count."""
    digest = hashlib.sha256()
    files = [PROJECT / "dbt_project.yml", *(file for name in ("models", "macros", "seeds") for file in (PROJECT / name).rglob("*"))]
    for file in sorted(files):
        if CUSTOM in file.parents:
            continue
        if file.suffix in {".sql", ".py", ".csv"} or file.name == "dbt_project.yml":
            digest.update(str(file.relative_to(PROJECT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def variables() -> dict[str, Any]:
    """The models' thresholds and lists, by name."""
    stated: dict[str, Any] = yaml.safe_load((PROJECT / "dbt_project.yml").read_text(encoding="utf-8"))["vars"]
    return stated


def require_perseus() -> None:
    """Check that the libraries of int_raid_group_days__fitted, which only samples within hours need, are installed. Raises: ModelError."""
    missing = [name for name in ("sklearn", "scipy") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(
            f"this build has samples within hours, and the detector perseus needs {' and '.join(missing)} for them; "
            "install drivetail with its extra: `uv sync --extra perseus`, or `pip install -e '.[perseus]'`"
        )


def beside_the_models(target: str) -> Path | None:
    """Where what holds for every warehouse is kept; null where an installation may not be written."""
    return PROJECT / "target" / target if os.access(PROJECT, os.W_OK) else None


def runner(manifest: Any = None) -> Any:
    """Dbt in this process. It is slow to import: commands that do not build do not pay for it."""
    os.environ["DO_NOT_TRACK"] = "1"
    # on a full disk its log cannot be written: a traceback for each line of it would hide what is wrong
    logging.raiseExceptions = False
    from dbt.cli.main import dbtRunner

    return dbtRunner(manifest=manifest)


class Project:
    """The dbt project, bound to one warehouse's build database."""

    _parsed: ClassVar[dict[str, Any]] = {}
    """The manifest of each target, for this process: the project is the same for every warehouse."""

    def __init__(self, warehouse: Warehouse, target: str = "duckdb") -> None:
        self._log = warehouse.build / "logs"
        self._target = target
        self._options = options(target, warehouse.build / "dbt", self._log)
        self.manifest: Any = Project.parsed(target, warehouse.build / "dbt", self._log)
        self._environment = {
            "DRIVETAIL_BUILD_DATABASE": str(warehouse.build_database),
            "DRIVETAIL_RAW": str(warehouse.raw),
            "DRIVETAIL_STORE": str(warehouse.store),
            "DRIVETAIL_MODELS_VERSION": self.version,
        }
        self._runner = runner(self.manifest)
        self.seconds: Counter[str] = Counter()
        """How long each model took that was run, with the tests of it alone, all runs together."""

    @classmethod
    def parsed(cls, target: str, folder: Path, log: Path) -> Any:
        """The manifest of the models, read once by this process.

        What dbt remembers of it lies beside the models, where every warehouse finds it (10 s less for each new one), or in `folder`
        where an installation may not be written. Connects to nothing.
        Raises: ModelError when the models do not parse.
        """
        if target not in cls._parsed:
            # dbt reads everything anew where the path of the database is another one than the last time
            os.environ["DRIVETAIL_BUILD_DATABASE"] = "build.duckdb"
            result = runner().invoke([*QUIET, "parse", *options(target, beside_the_models(target) or folder, log)])
            if not result.success:
                raise ModelError(f"the models do not parse: {result.exception or f'see {log}/dbt.log'}")
            cls._parsed[target] = result.result
        return cls._parsed[target]

    @classmethod
    def forget(cls) -> None:
        """Have the models read again by the next project: a file of theirs has changed."""
        cls._parsed.clear()

    def template(self, kind: str) -> Template:
        """The database of a kind that new warehouses begin with."""
        return Template(beside_the_models(self._target), kind, self.version)

    @cached_property
    def version(self) -> str:
        """See models_version()."""
        return models_version()

    @staticmethod
    def let_go() -> None:
        """Close the build database, which dbt keeps open between runs: no other process could open it, and a removed file lived on."""
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager

        DuckDBConnectionManager.close_all_connections()

    def bound(self, *, build: str, last_delivery: int, horizon: date | None) -> None:
        """Say what the runs that follow may see and where they write (macros/raw/register_raw.sql).

        build: name of the files that they write. last_delivery: number of the last delivery that counts. horizon: day before which
        drive-hours are pruned.
        """
        self._environment |= {
            "DRIVETAIL_BUILD": build,
            "DRIVETAIL_DELIVERIES": str(last_delivery),
            "DRIVETAIL_HORIZON": "" if horizon is None else horizon.isoformat(),
        }

    def run(self, command: str, *arguments: str, days: Iterable[date] | None = None) -> Any:
        """Run one dbt command, such as `run("build", "--select", "marts")`.

        days: UTC days whose stored models it computes and sees; all by default.
        Returns: dbt's result with one entry per node.
        Raises: ModelError naming the first node that failed.
        """
        os.environ |= self._environment
        os.environ["DRIVETAIL_DAYS"] = "all" if days is None else ",".join(day.isoformat() for day in days)
        result = self._runner.invoke([*QUIET, command, *arguments, *self._options])
        for each in getattr(result.result, "results", ()):  # what dbt would write to run_results.json
            if not hasattr(each, "node"):  # a macro that was run
                continue
            model = each.node.name if each.node.resource_type == "model" else getattr(each.node, "attached_node", None)
            if model:
                self.seconds[model.rsplit(".", 1)[-1]] += each.execution_time
        if result.success:
            return result.result
        if result.exception is not None:
            raise ModelError(f"dbt {command}: {result.exception}") from result.exception
        failed = [node for node in result.result if str(node.status) in {"error", "fail", "runtime error"}]
        if not failed:
            raise ModelError(f"dbt {command} failed; see {self._log}/dbt.log")
        first = failed[0]
        message = " ".join(str(first.message).split())
        raise ModelError(
            f"{first.node.resource_type} {first.node.name}: {message} ({len(failed)} of {len(result.result)} nodes failed; "
            f"the last publication stays; details in {self._log}/dbt.log)"
        )
