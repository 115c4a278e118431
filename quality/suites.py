"""Suites as data: `suites/TABLE.json` in Great Expectations' own form, or the file of that name in `WAREHOUSE/suites`.

The `meta` of an expectation says what follows when it breaks, in keys that Great Expectations ignores: `level` `row` (those
rows are rejected) or `batch` (the whole delivery is quarantined), `at_least_rows`, below which it is left out, and `not_of`, the
sources that it is not asked of.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl

from ingest.contract.errors import GateError
from ingest.contract.extras import how_to_install
from ingest.contract.values import RAW_KINDS
from ingest.sources import SOURCES
from quality.frames import GIVEN, PARAMETERS, columns

SHIPPED = Path(__file__).parent / "suites"
TABLES = (*RAW_KINDS, "ingested_files")
WITHOUT_ROWS = ("drive_samples", "drive_health", "drive_latencies", "ingested_files")
"""Tables without rejected rows: they are made of delivered rows, which are counted elsewhere (samples go with their drive-hour)."""
EXAMPLES = 3
_FUNCTIONS = {"trunc", "round", "abs", "PI", "E"}


@dataclass(frozen=True)
class Check:
    """One expectation of a suite. `sentence` is the message for the operator when it breaks, `where` the file and its place in it."""

    where: str
    table: str
    type: str
    level: str
    sentence: str
    kwargs: dict[str, Any]
    columns: tuple[str, ...]
    parameters: frozenset[str]
    at_least_rows: int
    not_of: frozenset[str]
    expectation: Any

    @property
    def is_presence(self) -> bool:
        """Whether it asks if anything is in a column, so that an empty column breaks it. Of others nothing can be said then."""
        return self.type == "expect_column_to_exist" or "null" in self.type


@dataclass(frozen=True)
class Finding:
    """Result of one check on one batch: state `passed`, `broken` or `left out` (with `why`), the value observed, the
    bounds after parameters, and for a row-level check the positions of the rows that break it.
    """

    check: Check
    state: str
    why: str | None = None
    observed: Any = None
    allowed: str = ""
    rows: Sequence[int] = ()


@contextmanager
def _without(*packages: str) -> Iterator[None]:
    """Hide packages from what is imported: Great Expectations would import all of pyspark and SQLAlchemy, which pandas' frames do not need.
    That takes seconds and warns of pandas, and where no file was started, as in `python -c` and in pytest's workers, pyspark ends the
    process with exit 0: it thinks that it tests itself.
    """
    imported = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages}
    for name in imported:
        del sys.modules[name]
    sys.modules.update(dict.fromkeys(packages))  # type: ignore[arg-type]  # to import one is an ImportError then
    try:
        yield
    finally:
        for name in packages:
            del sys.modules[name]
        sys.modules.update(imported)


def _import_when_used(package: str, name: str) -> None:
    """Have a module of a package imported by the first that uses something of it, not by all that name it."""
    if find_spec(package) and (spec := find_spec(f"{package}.{name}")) and spec.loader and spec.name not in sys.modules:
        spec.loader = LazyLoader(spec.loader)
        sys.modules[spec.name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        # `from package import name` looks here first, and imports it where it has to look further
        setattr(import_module(package), name, module)


_LOADING = Lock()


def great_expectations() -> Any:
    """Great Expectations, silent: imported when first needed, because that takes seconds; without telemetry or progress bars.

    By one thread at a time: an import hides packages from all of them.
    """
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> Any:
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        _import_when_used("scipy", "stats")  # two thirds of a second, for expectations that few suites have
        with _without("pyspark", "sqlalchemy"):
            import great_expectations as gx
            from great_expectations.data_context.types.base import ProgressBarsConfig
    except ImportError as error:
        raise GateError(f"the gate needs great-expectations ({error}); {how_to_install('gate')}") from error
    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)  # it sets itself to INFO
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    asset = context.data_sources.add_pandas("delivery").add_dataframe_asset("rows")
    return gx, asset.add_batch_definition_whole_dataframe("batch")


def suite_file(table: str, warehouse: Path) -> Path:
    """The suite of a raw table: the warehouse's own, else the one that drivetail comes with."""
    own = warehouse / "suites" / f"{table}.json"
    return own if own.exists() else SHIPPED / f"{table}.json"


def load_suite(table: str, warehouse: Path) -> list[Check]:
    """The checks of a raw table, in order. Raises: GateError."""
    path = suite_file(table, warehouse)
    try:
        expectations = json.loads(path.read_text(encoding="utf-8"))["expectations"]
        entries = [dict(entry) for entry in expectations]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GateError(f"{path}: not a suite ({type(error).__name__}: {error}); see docs/quality-gate.md, or remove it") from error
    return [_check(table, entry, f"{path}: expectation {number}") for number, entry in enumerate(entries, 1)]


def _check(table: str, entry: dict[str, Any], where: str) -> Check:
    gx, _ = great_expectations()
    kind, kwargs, meta = str(entry.get("type")), dict(entry.get("kwargs", {})), dict(entry.get("meta", {}))
    where = f"{where} ({kind})"
    if meta.get("level") not in ("row", "batch"):
        raise GateError(
            f"{where}: meta.level is {meta.get('level')!r}; give 'row' (reject those rows) or 'batch' (quarantine the delivery)"
        )
    if not entry.get("description"):
        raise GateError(f"{where}: no description; say in one sentence what a failure means")
    named = tuple(
        name for key in ("column", "column_A", "column_B", "column_list") if (value := kwargs.get(key))
        for name in ([value] if isinstance(value, str) else value)
    )  # fmt: skip
    known = {*GIVEN[table], *columns(table, datetime(2000, 1, 1))}
    if unknown := sorted(set(named) - known):
        raise GateError(f"{where}: no column {unknown[0]!r} in {table}; there are {', '.join(sorted(known))}")
    expressions = [value["$PARAMETER"] for value in kwargs.values() if isinstance(value, dict) and "$PARAMETER" in value]
    parameters = frozenset(name for text in expressions for name in re.findall(r"[A-Za-z_]\w*", text)) - _FUNCTIONS
    if unknown := sorted(parameters - set(PARAMETERS)):
        raise GateError(f"{where}: no parameter {unknown[0]!r}; there are {', '.join(PARAMETERS)}")
    if meta["level"] == "row" and (table in WITHOUT_ROWS or "mostly" in kwargs):
        raise GateError(
            f"{where}: meta.level 'row' rejects every row that breaks it, so without mostly and not of {' or '.join(WITHOUT_ROWS)}; "
            "make it 'batch'"
        )
    try:
        implementation = gx.expectations.registry.get_expectation_impl(kind)
        expectation = implementation(**kwargs, meta=meta, description=entry["description"])
    except Exception as error:  # whatever Great Expectations thinks of it
        raise GateError(f"{where}: {' '.join(str(error).split())[:300]}") from error
    e = gx.expectations.expectation
    if meta["level"] == "row" and not issubclass(
        implementation, e.ColumnMapExpectation | e.ColumnPairMapExpectation | e.MulticolumnMapExpectation
    ):
        raise GateError(f"{where}: does not check single rows; make meta.level 'batch'")
    least, not_of = int(meta.get("at_least_rows", 0)), frozenset(meta.get("not_of", ()))
    if unknown := sorted(not_of - set(SOURCES)):
        raise GateError(f"{where}: no source {unknown[0]!r} for meta.not_of; there are {', '.join(sorted(SOURCES))}")
    return Check(where, table, kind, meta["level"], entry["description"], kwargs, named, parameters, least, not_of, expectation)


def validate(checks: Sequence[Check], rows: pl.DataFrame, parameters: dict[str, Any], now: datetime) -> list[Finding]:
    """Look at rows (contract columns) with some checks of one suite. An unknown parameter is null. `now`: UTC without zone."""
    if not checks:
        return []
    gx, definition = great_expectations()
    derived = columns(checks[0].table, now)
    names = sorted({name for check in checks for name in check.columns})
    looked_at = rows.select(derived[name].value.alias(name) if name in derived else pl.col(name) for name in names)
    looked_at = looked_at.cast({pl.Int8: pl.Int64, pl.Int32: pl.Int64})  # Great Expectations takes other widths one by one
    empty = {name for name in names if looked_at[name].null_count() == rows.height}
    absent = empty & {name for check in checks if check.is_presence for name in check.columns}
    # ids that are only counted go over as numbers: half a million Python strings would cost more than all the checks
    counted = [name for name in names if all("unique" in check.type for check in checks if name in check.columns)]
    texts = [name for name, kind in looked_at.schema.items() if kind == pl.String() and name not in counted]
    frame = looked_at.with_columns(pl.col(counted).hash(), pl.col(texts).cast(pl.Categorical)).drop(absent).to_pandas()
    if not frame.shape[1]:
        frame = frame.reindex(range(rows.height))
    findings: dict[int, Finding] = {}
    asked = []
    for number, check in enumerate(checks):
        unknown = sorted(name for name in check.parameters if parameters.get(name) is None)
        alone = looked_at[check.columns[0]] if len(check.columns) == 1 and not check.is_presence else None
        said = rows.height if alone is None else alone.count()
        if check.columns and empty >= set(check.columns) and not check.is_presence:
            findings[number] = Finding(check, "left out", f"nothing is known of {' and '.join(check.columns)}")
        elif said < check.at_least_rows:
            findings[number] = Finding(check, "left out", f"{said} rows; asked from {check.at_least_rows} on")
        elif unknown:
            findings[number] = Finding(check, "left out", f"{unknown[0]} is not known")
        else:
            expectation = check.expectation.copy(update={"meta": {"number": number}})
            asked.append(expectation)
    if asked:
        batch = definition.get_batch({"dataframe": frame})
        form = {"result_format": "COMPLETE", "return_unexpected_index_query": False, "partial_unexpected_count": EXAMPLES}
        known = {name: value for name, value in parameters.items() if value is not None}
        suite = gx.ExpectationSuite(name=checks[0].table, expectations=asked)
        try:
            results = batch.validate(suite, expectation_parameters=known, result_format=form).results
        except Exception as error:  # a bound that cannot be computed
            raise _mistaken(" or ".join(sorted({check.where.split(": ")[0] for check in checks})), error) from error
        for result in results:
            number = result.expectation_config.meta["number"]
            findings[number] = _finding(checks[number], result)
    return [findings[number] for number in range(len(checks))]


def _mistaken(where: str, error: object) -> GateError:
    return GateError(f"{where}: Great Expectations failed: {' '.join(str(error).split())[:300]}; correct it, or remove the file")


def _finding(check: Check, result: Any) -> Finding:
    values = result.result or {}
    failure = result.exception_info or {}
    allowed = allowed_text(result.expectation_config.kwargs)
    if "raised_exception" not in failure or failure["raised_exception"]:
        if not check.is_presence:
            fault = failure if "raised_exception" in failure else next(iter(failure.values()))
            raise _mistaken(check.where, fault["exception_message"])
        observed: Any = "nothing: the column is empty"
    elif "observed_value" in values:
        observed = _plain(values["observed_value"])
    elif "unexpected_count" in values:
        count, examples = values["unexpected_count"], values.get("partial_unexpected_list", [])[:EXAMPLES]
        examples = [] if "unique" in check.type else examples
        share = (values.get("unexpected_percent") or 0) / 100
        shown = f", such as {', '.join(str(_plain(value)) for value in examples)}" if examples else ""
        observed = f"{count:,} {'row' if count == 1 else 'rows'} outside ({share:.1%}){shown}" if count else "no row outside"
    else:
        observed = "there" if result.success else "nothing: the column is empty"
    rows = values.get("unexpected_index_list") or [] if check.level == "row" else []
    return Finding(check, "passed" if result.success else "broken", None, observed, allowed, rows)


def allowed_text(kwargs: dict[str, Any]) -> str:
    """The bounds of an expectation in words: `at most 0.25`, `10 to 2e+06`, `one of SATA, SAS`."""
    least, most = _plain(kwargs.get("min_value")), _plain(kwargs.get("max_value"))
    parts = []
    if least is not None and most is not None:
        parts.append(f"{least} to {most}")
    elif least is not None or most is not None:
        parts.append(f"at least {least}" if most is None else f"at most {most}")
    if kwargs.get("value_set"):
        parts.append("one of " + ", ".join(map(str, kwargs["value_set"])))
    if kwargs.get("column_A"):
        parts.append(f"{kwargs['column_A']} from {kwargs['column_B']} on")
    if kwargs.get("mostly", 1) != 1:
        parts.append(f"in at least {kwargs['mostly']:.0%} of the rows")
    return ", ".join(parts)


def _plain(value: Any) -> Any:
    """A number as people read it, text in one line."""
    if isinstance(value, dict | list | tuple):
        return ", ".join(str(_plain(part)) for part in (value.values() if isinstance(value, dict) else value))
    if isinstance(value, str):  # delivered text ends up in one line of a terminal
        return "".join(letter if letter.isprintable() else " " for letter in value[:80])
    if value is None or isinstance(value, bool):
        return value
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)
