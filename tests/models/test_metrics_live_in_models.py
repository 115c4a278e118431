"""Numbers are defined in models. SQL in Python selects, filters and orders what they say; the exceptions are listed here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from console.pages import stated
from engine.warehouse import PROJECT

ROOMS = ("console", "drivetail", "report", "quality", "dags", "lab/ask", "lab/cli", "lab/pages", "study/pages")
SQL = re.compile(r"\bselect\b.*\bfrom\b|^\s*from\s+\w+\.\w+|\bcast\(|\bcoalesce\(", re.S)
OF_FILES = re.compile(r"\b(raw|store)\.|\b(landed_files|lost_later|rolled_up|parquet_file_metadata)\b")
OF_MODELS = re.compile(r"\b(marts|intermediate|staging)\.")
COMPUTES = re.compile(
    r"\b(count|sum|avg|min|max|median|stddev\w*|percentile\w*|quantile\w*|arg_max|arg_min|max_by|min_by|bool_or|bool_and)\s*\("
    r"|([<>]=?)\s*[\d.]*[1-9]"  # a threshold; more than 0 asks whether there is any
)

EXCEPTIONS = {
    ("before_after.py", "count"): "the lab: how many runs failed alike",
    ("before_after.py", "min"): "the lab: a phase in which they did",
    ("collect_published.py", "sum"): "adds the drive-hours of fct_recent_drives up",
    ("content.py", "count"): "how many rows a listing has beside those it shows",
    ("drive.py", "count"): "explain: how many rows one drive has, how many intervals are not shown",
    ("drive.py", "max"): "explain: the last row of one drive",
    ("drive.py", "min"): "explain: the first row of one drive",
    ("listings.py", "max"): "the last row of a host that went silent",
    ("listings.py", "min"): "for how long it has been silent",
    ("missing.py", "max"): "explain: the row of a drive before an hour",
    ("missing.py", "min"): "explain: the row of a drive after an hour",
    ("missing.py", "max_by"): "explain: the RAID group of that row",
    ("maintenance.py", "count"): "whether a rebuilt day differs",
    ("maintenance.py", "max"): "the last delivery of a publication",
    ("published.py", "sum"): "console: how many days fit into memory",
    ("queries.py", "max"): "the last delivery of a publication",
    ("records.py", "max"): "explain: whether a name was one drive's throughout",
    ("records.py", "min"): "explain: that drive",
    ("status.py", "max"): "lab: the least change that every cell of a benchmark can show",
    ("write.py", "count"): "lab: how many files were read, how many tests miss the same runs",
    ("write.py", "max"): "the last delivery of a publication",
}
"""File and function -> what it is for."""


def texts(source: str) -> Iterator[str]:
    """The string constants of a module, docstrings left out; an f-string is one text, its values left out."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)}
            yield "".join(part.value if isinstance(part, ast.Constant) else "?" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.value


def computed(source: str) -> set[str]:
    """Functions and comparisons by which the SQL of a module computes from models."""
    asked = (re.sub(r"(?m)^\s*--.*$", "", text) for text in texts(source))
    queries = (text for text in asked if SQL.search(text) and (OF_MODELS.search(text) or not OF_FILES.search(text)))
    return {found[1] or found[2] for text in queries for found in COMPUTES.finditer(text)}


def test_sql_outside_the_models_computes_nothing() -> None:
    files = [file for room in ROOMS for file in sorted((PROJECT / room).rglob("*.py"))]
    found = {(file.name, what) for file in files for what in computed(file.read_text(encoding="utf-8"))}
    shown = [entry["sql"] for entries in stated().values() for entry in entries if "sql" in entry]
    found |= {("pages.yml", what) for sql in shown for what in computed(f"q = {sql!r}")}
    assert found == set(EXCEPTIONS), "make it a column of a model, or say in EXCEPTIONS what it is for"
    assert not [file for room in ROOMS for file in (PROJECT / room).rglob("*.sql")], "queries are models, macros or analyses"


def test_a_metric_in_python_is_found() -> None:
    assert computed('q = f"select kind, median(slowdown) from marts.fct_drive_hours where slowdown >= 1.5 and kind = {kind}"') == {
        "median",
        ">=",
    }
    assert computed('"""select count(*) from marts.dim_drives"""') == set(), "a docstring asks nothing"
    assert computed('q = "select drive_id from marts.dim_drives where hours > 0"') == set()
    assert computed('q = "select count(*) from raw.drives"') == set(), "a fact about files"
