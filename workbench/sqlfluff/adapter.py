"""dbt's adapter and vars for sqlfluff, which executes this module before each model: our own macros render as DuckDB's, with the real vars."""

from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, pass_context
from jinja2.runtime import Context

VARIABLES: dict[str, Any] = {}
for _project in ("dbt_project.yml", "lab/dbt_project.yml", "study/dbt_project.yml"):
    VARIABLES |= yaml.load((Path(__file__).parents[2] / _project).read_text(encoding="utf-8"), yaml.CSafeLoader)["vars"]


@pass_context
def dispatch(context: Context, name: str) -> Any:
    """The macro of this name for DuckDB, else the one for every engine."""
    return context.get(f"duckdb__{name}") or context[f"default__{name}"]


def quote(name: str) -> str:
    """A quoted identifier."""
    return f'"{name}"'


if Environment.compile.__name__ == "compile":
    # sqlfluff compiles every macro twice for each model; once will do
    _compile = Environment.compile
    _compiled: dict[tuple[Any, ...], Any] = {}

    def _compile_once(self: Environment, *text: Any) -> Any:
        if text not in _compiled:
            _compiled[text] = _compile(self, *text)
        return _compiled[text]

    Environment.compile = _compile_once  # type: ignore[assignment,method-assign]
