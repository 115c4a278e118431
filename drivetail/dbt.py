"""dbt in this process: parsed once, then a fraction of a second per run."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from typing import Any

from drivetail.warehouse import PROJECT, Warehouse


class ModelError(RuntimeError):
    """A model or a data test failed; the message names the first and says what it found."""


class Project:
    """The dbt project, bound to one warehouse's build database."""

    _parsed: Any = None
    """The manifest of this process: the project is the same for every warehouse."""

    def __init__(self, warehouse: Warehouse, target: str = "duckdb") -> None:
        os.environ["DRIVETAIL_BUILD_DATABASE"] = str(warehouse.build_database)
        os.environ["DO_NOT_TRACK"] = "1"
        # dbt is slow to import: commands that do not build do not pay for it
        from dbt.cli.main import dbtRunner

        self._log = warehouse.build / "logs"
        self._options = [
            "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT), "--target", target,
            "--target-path", str(warehouse.build / "dbt"), "--log-path", str(self._log),
        ]  # fmt: skip
        # writing the manifest after every command costs more than a small batch's models
        self._quiet = ["--log-level", "none", "--log-level-file", "info", "--no-write-json"]
        if Project._parsed is None:
            result = dbtRunner().invoke([*self._quiet, "parse", *self._options])
            if not result.success:
                raise ModelError(f"the models do not parse: {result.exception or f'see {self._log}/dbt.log'}")
            Project._parsed = result.result
        self.manifest: Any = Project._parsed
        self._runner = dbtRunner(manifest=self.manifest)

    @cached_property
    def version(self) -> str:
        """Changes when a definition does: SQL, seeds, thresholds. Descriptions do not count."""
        digest = hashlib.sha256()
        files = [PROJECT / "dbt_project.yml", *(file for name in ("models", "macros", "seeds") for file in (PROJECT / name).rglob("*"))]
        for file in sorted(files):
            if file.suffix in {".sql", ".csv"} or file.name == "dbt_project.yml":
                digest.update(str(file.relative_to(PROJECT)).encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()

    @staticmethod
    def let_go() -> None:
        """Close the build database, which dbt keeps open between runs: no other process could open it, and a removed file lived on."""
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager

        DuckDBConnectionManager.close_all_connections()

    def run(self, command: str, *arguments: str) -> Any:
        """Run one dbt command, such as `run("build", "--select", "marts")`.

        Returns: dbt's result with one entry per node.
        Raises: ModelError naming the first node that failed.
        """
        result = self._runner.invoke([*self._quiet, command, *arguments, *self._options])
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
