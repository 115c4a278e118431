"""dbt in this process: parsed once, then a fraction of a second per run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from drivetail.warehouse import PROJECT, Warehouse


class ModelError(RuntimeError):
    """A model or a data test failed; the message names the first and says what it found."""


class Project:
    """The dbt project, bound to one warehouse's build database."""

    def __init__(self, warehouse: Warehouse, target: str = "duckdb") -> None:
        os.environ["DRIVETAIL_BUILD_DATABASE"] = str(warehouse.build_database)
        os.environ["DO_NOT_TRACK"] = "1"
        # dbt is slow to import: commands that do not build do not pay for it
        from dbt.cli.main import dbtRunner

        self._options = [
            "--project-dir", str(PROJECT), "--profiles-dir", str(PROJECT), "--target", target,
            "--target-path", str(warehouse.build / "dbt"), "--log-path", str(warehouse.build / "logs"),
        ]  # fmt: skip
        self._quiet = ["--log-level", "none", "--log-level-file", "info"]
        result = dbtRunner().invoke([*self._quiet, "parse", *self._options])
        if not result.success:
            raise ModelError(f"the models do not parse: {result.exception or 'see ' + str(warehouse.build / 'logs/dbt.log')}")
        self.manifest: Any = result.result
        self._runner = dbtRunner(manifest=self.manifest)

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
            raise ModelError(f"dbt {command} failed; see {Path(self._options[-1]) / 'dbt.log'}")
        first = failed[0]
        raise ModelError(f"{first.node.resource_type} {first.node.name}: {first.message} ({len(failed)} of {len(result.result)} nodes failed)")
