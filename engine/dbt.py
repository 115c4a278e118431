"""dbt in this process: parsed once, then a fraction of a second per run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import pickle
import re
import shutil
from collections import Counter
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from dataclasses import fields
from datetime import date
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from engine.template import Template
from engine.thresholds import own_thresholds, variables
from engine.warehouse import PROJECT, Warehouse
from ingest.raw.durable import replace_file


class ModelError(RuntimeError):
    """A model or a data test failed; the message names the first and says what it found."""


class Hindered(ModelError):
    """Room or memory is short, or somebody has the build database open: once that is over, the same work goes through."""


# writing the manifest after every command costs more than a small batch's models, and so does listing every relation before it
QUIET = ("--log-level", "none", "--log-level-file", "info", "--no-write-json", "--no-populate-cache")


CUSTOM = "custom"
"""Where dbt finds the custom models: a model path of dbt_project.yml, which a project for parsing may have as a link."""


def custom_folder() -> Path:
    """The folder of the analysts' own models; none of ours depends on them."""
    return Path(os.environ.get("DRIVETAIL_CUSTOM_MODELS") or PROJECT / "models" / "custom").resolve()


def project_for_parsing(folder: Path, *, with_custom: bool) -> Path:
    """Make a folder of links to the dbt project without models/custom; with_custom: the custom models are there as `custom`.

    Only parsing needs it: what runs is in the manifest. The checkout stays as it is. Returns: the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    links = {name: PROJECT / name for name in ("dbt_project.yml", "profiles.yml", "models", "macros", "seeds", "tests", "analyses")}
    if with_custom:
        links[CUSTOM] = custom_folder()
    for name, place in links.items():
        draft = folder / f"{name}.{os.getpid()}"
        draft.unlink(missing_ok=True)
        draft.symlink_to(place)
        os.replace(draft, folder / name)
    draft = folder / f".dbtignore.{os.getpid()}"
    draft.write_text((PROJECT / ".dbtignore").read_text(encoding="utf-8") + "\nmodels/custom/**\n", encoding="utf-8")
    os.replace(draft, folder / ".dbtignore")
    return folder


def options(target: str, folder: Path, log: Path, project: Path = PROJECT) -> list[str]:
    """Options of every dbt command; folder: where it writes what it compiles."""
    return [
        "--project-dir", str(project), "--profiles-dir", str(PROJECT), "--target", target,
        "--target-path", str(folder), "--log-path", str(log),
    ]  # fmt: skip


_DESCRIPTION = re.compile(
    rb"""(?m)^( *)description: [>|].*\n(?:\1 +.*\n|\n)*|^ *description: [^>|"'\n].*\n|description: (?:"(?:[^"\\]|\\.)*"|'[^']*'|[^,}\n]*)"""
)
"""A description in a .yml file: a block, a line, or one among others in a line."""


def models_version() -> str:
    """Changes when a definition does: SQL, seeds, thresholds, columns and settings. Descriptions and unit tests do not count."""
    return _digest(("models", "macros", "seeds"), {".sql", ".py", ".csv", ".yml"}, _stated)


def _stated(file: Path) -> bytes:
    """What a file of the project defines: of a .yml file all but descriptions and unit tests."""
    content = file.read_bytes()
    return _DESCRIPTION.sub(b"", content.split(b"\nunit_tests:")[0]) if file.suffix == ".yml" else content


def _digest(folders: Iterable[str], suffixes: Container[str], content: Callable[[Path], bytes] = Path.read_bytes) -> str:
    """A digest of dbt_project.yml and of the files with these suffixes in these folders of the project, custom models left out."""
    digest = hashlib.sha256()
    files = [PROJECT / "dbt_project.yml", *(file for name in folders for file in (PROJECT / name).rglob("*") if file.suffix in suffixes)]
    for file in sorted(files):
        if PROJECT / "models" / "custom" not in file.parents:
            digest.update(str(file.relative_to(PROJECT)).encode() + b"\0" + content(file))
    return digest.hexdigest()


def store_version(manifest: Any) -> str:
    """Changes when a definition of what is stored does: of the stored models, the plan and all that both are made of, the macros that
    these use, and every variable that an installation cannot set. A change of any other definition computes no day again.

    manifest: of the target duckdb, whichever engine computes.
    """
    digest = hashlib.sha256()
    for unique_id in sorted(_made_of(manifest)):
        if node := manifest.nodes.get(unique_id) or manifest.sources.get(unique_id):
            columns = [(column.name, column.data_type) for column in node.columns.values()]
            config = node.config.to_dict() if unique_id in manifest.nodes else {}
            text = [node.raw_code, node.checksum.checksum] if unique_id in manifest.nodes else []
            stated = [unique_id, text, columns, config]
        else:
            stated = [unique_id, manifest.macros[unique_id].macro_sql]
        digest.update(json.dumps(stated, sort_keys=True, default=str).encode())
    settable = variables()["settable"]
    # those of the lab are no fleet's (engine/generations.py)
    left_out = {"settable", *settable}
    fixed = {name: value for name, value in variables().items() if name not in left_out and not name.startswith("lab_")}
    digest.update(json.dumps(fixed, sort_keys=True).encode())
    return digest.hexdigest()


def _made_of(manifest: Any) -> set[str]:
    """Unique ids of the models that are stored or decide which days are, of dbt's hooks, and of all that these depend on."""
    files: dict[str, list[str]] = {}
    ours = {unique_id: macro for unique_id, macro in manifest.macros.items() if macro.package_name == "drivetail"}
    for unique_id, macro in ours.items():
        files.setdefault(macro.original_file_path, []).append(unique_id)
    waiting = [
        unique_id
        for unique_id, node in manifest.nodes.items()
        if node.resource_type == "operation"
        or (node.resource_type == "model" and (node.config.materialized == "by_day" or node.schema == "plan"))
    ]
    found: set[str] = set()
    while waiting:
        unique_id = waiting.pop()
        if unique_id in found:
            continue
        if unique_id in manifest.nodes:
            depends_on = manifest.nodes[unique_id].depends_on
            waiting += [*depends_on.nodes, *depends_on.macros]
        elif unique_id in ours and ours[unique_id].original_file_path == "macros/raw/register_lab.sql":
            continue  # of the lab (engine/generations.py)
        elif unique_id in ours:
            # a macro and what engines have in its place are in one file
            waiting += [*ours[unique_id].depends_on.macros, *files[ours[unique_id].original_file_path]]
        elif unique_id not in manifest.sources:  # a macro of dbt
            continue
        found.add(unique_id)
    return found


def require_perseus() -> None:
    """Check that the libraries of int_raid_group_days__fitted, which only samples within hours need, are installed. Raises: ModelError."""
    missing = [name for name in ("sklearn", "scipy") if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelError(
            f"this build has samples within hours, and the detector perseus needs {' and '.join(missing)} for them; "
            "install drivetail[perseus] (`uv sync --extra perseus` in a checkout)"
        )


def beside_the_models(target: str) -> Path | None:
    """Where what holds for every warehouse is kept; null where an installation may not be written."""
    return PROJECT / "target" / target if os.access(PROJECT, os.W_OK) else None


def runner(manifest: Any = None, listeners: Iterable[Callable[[Any], None]] = ()) -> Any:
    """Dbt in this process. It is slow to import: commands that do not build do not pay for it. listeners: are given each of its events."""
    os.environ["DO_NOT_TRACK"] = "1"
    # on a full disk its log cannot be written: a traceback for each line of it would hide what is wrong
    logging.raiseExceptions = False
    from dbt.cli.main import dbtRunner

    return dbtRunner(manifest=manifest, callbacks=[*listeners])


def invoke(dbt: Any, arguments: list[str]) -> Any:
    """Dbt's result of a command. Raises: KeyboardInterrupt, which dbt returns with its results."""
    result = dbt.invoke(arguments)
    if isinstance(result.exception, KeyboardInterrupt):
        raise result.exception
    return result


PARSED = "partial_parse.msgpack"
"""What dbt remembers of the models it has read."""


def _parse(what: str, arguments: list[str], log: Path) -> Any:
    """The manifest of what dbt reads. Raises: ModelError when it does not parse."""
    before = os.environ.get("DRIVETAIL_BUILD_DATABASE")
    # dbt reads everything again where the path of the database is not that of the last time
    os.environ["DRIVETAIL_BUILD_DATABASE"] = "build.duckdb"
    try:
        result = invoke(runner(), [*QUIET, "parse", *arguments])
    finally:
        if before is None:
            del os.environ["DRIVETAIL_BUILD_DATABASE"]
        else:
            os.environ["DRIVETAIL_BUILD_DATABASE"] = before
    if not result.success:
        raise ModelError(f"{what} do not parse: {result.exception or f'see {log}/dbt.log'}")
    return result.result


def _whole_manifest(target: str, folder: Path, log: Path) -> Any:
    """The manifest with unit tests. See Project.parsed()."""
    place = beside_the_models(target) or folder
    return _parse("the models", options(target, place, log, project_for_parsing(place / "project", with_custom=False)), log)


def _manifest(target: str, folder: Path, log: Path) -> Any:
    """See Project.parsed(). It takes dbt a second to find that nothing has changed: the manifest is kept while that is so."""
    beside = beside_the_models(target)
    place = beside or folder
    made_of = [
        str(PROJECT),  # a seed knows where it lies
        _digest(("models", "macros", "seeds", "tests", "analyses"), {".sql", ".py", ".csv", ".yml", ".md"}),
        *((PROJECT / name).read_text(encoding="utf-8") for name in ("profiles.yml", ".dbtignore")),
        Path(__file__).read_text(encoding="utf-8"),  # decides what is kept of a manifest
        *(version(name) for name in ("dbt-core", "dbt-adapters", "dbt-duckdb")),
    ]
    kept = place / f"manifest-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]}.pickle"
    # to read a pickle is to run it: only one in the folder of the models is trusted, as they are
    if beside:
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            content = pickle.loads(kept.read_bytes())
            from dbt.contracts.graph.manifest import Manifest

            return Manifest(**content)
    manifest = _whole_manifest(target, folder, log)
    # a build of these models runs none, and dbt would link all of them to their models for each of its commands
    manifest.unit_tests.clear()
    if beside:
        # what begins with _ is found again; the manifest's own way to be pickled mixes it up
        content = {field.name: getattr(manifest, field.name) for field in fields(manifest) if field.name[0] != "_"}
        with suppress(OSError):
            for other in place.glob("manifest-*.pickle"):
                other.unlink()
            replace_file(kept, pickle.dumps(content))
    return manifest


class Project:
    """The dbt project, bound to one warehouse's build database."""

    _parsed: ClassVar[dict[str, Any]] = {}
    """The manifest of each target, for this process: the project is the same for every warehouse."""

    def __init__(self, warehouse: Warehouse, target: str = "duckdb", *, with_unit_tests: bool = False) -> None:
        """with_unit_tests: keep dbt's unit tests, which no build runs."""
        self._log = warehouse.build / "logs"
        self._target = target
        self._folder = warehouse.build / "dbt"
        self.thresholds = own_thresholds(warehouse)
        # the manifest is that of every warehouse: what a model makes of a variable is said when it runs
        self._options = [*options(target, self._folder, self._log), "--vars", json.dumps(self.thresholds)]
        read = _whole_manifest if with_unit_tests else Project.parsed
        self.manifest: Any = read(target, self._folder, self._log)
        self._environment = {
            "DRIVETAIL_BUILD_DATABASE": str(warehouse.build_database),
            "DRIVETAIL_RAW": str(warehouse.raw),
            "DRIVETAIL_STORE": str(warehouse.spark if target == "spark" else warehouse.store),
            "DRIVETAIL_MODELS_VERSION": self.store_version,
            "DRIVETAIL_LAB": "",
            "DRIVETAIL_TABLES": str(warehouse.spark_tables) if target == "spark" else "",
        }
        self._runner = runner(self.manifest, [self._listen])
        self._said = ""
        self.seconds: Counter[str] = Counter()
        """How long each model took that was run, with the tests of it alone, all runs together."""

    @classmethod
    def parsed(cls, target: str, folder: Path, log: Path) -> Any:
        """The manifest of the models, read once by this process.

        What dbt makes of them is kept in the folder of the models, where every warehouse finds it (10 s less for each new one), or in
        `folder` where an installation may not be written. Connects to nothing.
        Raises: ModelError when the models do not parse.
        """
        if target not in cls._parsed:
            cls._parsed[target] = _manifest(target, folder, log)
        return cls._parsed[target]

    def parsed_with_custom(self) -> Any:
        """The manifest of the models and the custom models, read again each time. Raises: ModelError when they do not parse."""
        place = self._folder.with_name("dbt-custom")
        known, seen = (beside_the_models(self._target) or self._folder) / PARSED, place / PARSED
        project = project_for_parsing(place / "project", with_custom=True)
        # what dbt remembers of the project's models: then it reads the custom models alone
        if known.exists():
            shutil.copyfile(known, seen)
        return _parse("the custom models", options(self._target, place, self._log, project), self._log)

    def run_custom(self, manifest: Any, names: list[str]) -> Any:
        """Build custom models of a manifest with their tests, over all days.

        Returns: dbt's results, one per node. Raises: ModelError when dbt does not get as far as running them.
        """
        os.environ |= self._environment
        os.environ["DRIVETAIL_DAYS"] = "all"
        result = invoke(runner(manifest), [*QUIET, "build", "--select", *names, *self._options])
        if not hasattr(result.result, "results"):
            raise ModelError(f"dbt could not run the custom models: {result.exception or f'see {self._log}/dbt.log'}")
        return result.result.results

    @classmethod
    def forget(cls) -> None:
        """Have the models read again by the next project: a file of theirs has changed."""
        cls._parsed.clear()

    def template(self, kind: str) -> Template:
        """The database of a kind that new warehouses begin with; with thresholds of their own they begin with none."""
        return Template(None if self.thresholds else beside_the_models(self._target), kind, models_version())

    @cached_property
    def version(self) -> str:
        """Changes when a definition does, or a threshold of this warehouse: then it is published again. See models_version()."""
        return models_version() + (json.dumps(self.thresholds, sort_keys=True) if self.thresholds else "")

    @cached_property
    def store_version(self) -> str:
        """Changes when a definition of what is stored does."""
        return store_version(Project.parsed("duckdb", self._folder, self._log))

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

    def of_lab(self, database: Path, scratch: Path, lab: Path, experiments: Iterable[str]) -> None:
        """Have the runs that follow see some experiments of the lab and nothing of the fleet, in a database of their own.

        database: named as the warehouse's. scratch: a folder in which `raw` is empty. lab: folder of the landed bundles.
        """
        self._environment |= {
            "DRIVETAIL_BUILD_DATABASE": str(database),
            "DRIVETAIL_RAW": str(scratch / "raw"),
            "DRIVETAIL_STORE": str(scratch),
            "DRIVETAIL_BUILD": "",
            "DRIVETAIL_DELIVERIES": "",
            "DRIVETAIL_HORIZON": "",
            "DRIVETAIL_LAB": str(lab),
            "DRIVETAIL_EXPERIMENTS": ",".join(experiments),
        }

    def _listen(self, event: Any) -> None:
        """Keep why a macro failed: dbt says it in an event alone."""
        if event.info.name in ("RunningOperationCaughtError", "RunningOperationUncaughtError"):
            self._said = " ".join(event.data.exc.split())

    def run(self, command: str, *arguments: str, days: Iterable[date] | None = None) -> Any:
        """Run one dbt command, such as `run("build", "--select", "marts")`.

        days: UTC days whose stored models it computes and sees; all by default.
        Returns: dbt's result with one entry per node.
        Raises: ModelError naming the first node that failed.
        """
        os.environ |= self._environment
        os.environ["DRIVETAIL_DAYS"] = "all" if days is None else ",".join(day.isoformat() for day in days)
        result = invoke(self._runner, [*QUIET, command, *arguments, *self._options])
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
        failed = [each for each in result.result if str(each.status) in {"error", "fail", "runtime error"}]
        if failed and not hasattr(failed[0], "node"):  # a macro that was run
            raise ModelError(f"dbt {command} {' '.join(arguments)}: {self._said}; details in {self._log}/dbt.log")
        if not failed:
            raise ModelError(f"dbt {command} failed; see {self._log}/dbt.log")
        first = failed[0]
        message = " ".join(str(first.message).split())
        raise ModelError(
            f"{first.node.resource_type} {first.node.name}: {message} ({len(failed)} of {len(result.result)} nodes failed; "
            f"the last publication stays; details in {self._log}/dbt.log)"
        )
