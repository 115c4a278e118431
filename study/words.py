"""The study (The Tail at Store, FAST'16) in words: the numbers of `marts.study_results`, in the paper's order and as it writes them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import duckdb

from engine.read import Row, fetch
from report.words import human

FINDINGS = {
    1: "how often a drive is slow",
    2: "how often a RAID group has a slow drive",
    3: "whether it helps not to wait for the slowest drives",
    4: "how long a drive stays slow",
    5: "how soon a slow drive is slow again",
    6: "how many drives are ever slow",
    7: "how often a slow drive is slow",
    8: "whether more or larger I/O explains it",
    9: "whether a slow drive reports an error",
    10: "whether older drives are slower",
    11: "whether SSDs with more bits in a cell are slower",
    12: "whether the vendor matters",
    13: "what a slow drive costs in throughput",
    14: "whether slow drives are unplugged",
    15: "whether unplugging and replugging helps",
}
"""The findings of the paper, by number: the question each answers."""

REFERENCE_KINDS = ("finding", "table", "figure", "text")
"""Where in the paper a number stands, in the order of the output."""

VERDICTS = {
    "agrees": "agree", "differs": "differ", "cannot tell": "cannot be told", "no data": "no data", "not comparable": "not comparable",
}  # fmt: skip
"""Every verdict, and how a count of it is worded."""

OPERATORS = {"=": "", "~": "~ ", ">=": "\u2265 ", "<=": "\u2264 ", ">": "> ", "<": "< "}

RESULTS = """
select results.*, reference.place as reference_kind, reference.operator, reference.value as paper
from marts.study_results as results
left join study.study_references as reference on results.id = reference.id
where ? is null or results.kind = ?
"""


def fetch_results(connection: duckdb.DuckDBPyConnection, kind: str | None = None) -> list[Row]:
    """Every number of the paper that this fleet is compared with, in the paper's order: findings, tables, figures, text.

    kind: `disk` or `ssd`; by default both. Rows hold the columns of marts.study_results and, of its reference, `reference_kind`,
    `operator` and `paper`, the number as printed.
    """
    return sorted(fetch(connection, RESULTS, [kind, kind]), key=paper_order)


def paper_order(row: Row) -> tuple[object, ...]:
    """Where a result stands in the paper: what it is of, then its id with its digits as numbers, then its kind."""
    place = REFERENCE_KINDS.index(row["reference_kind"]) if row["reference_kind"] in REFERENCE_KINDS else len(REFERENCE_KINDS)
    return place, by_number(row["id"]), row["kind"]


def by_number(name: str) -> list[int | str]:
    """Sorts names with numbers in them as people do: `threshold 3` before `threshold 10`."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def finding_of(row: Row) -> int | None:
    """The number of the finding that a result belongs to; None for those of tables, figures and the text."""
    return int(row["id"][1:3]) if row["reference_kind"] == "finding" else None


def group_of(row: Row) -> str:
    """The heading a result stands under: `Finding 4`, `Table 3a`, `Figure 10b`, `Text`."""
    finding = finding_of(row)
    if finding is not None:
        return f"Finding {finding}"
    printed = re.match(r"(?:T|FG|F)(\d+[A-Z]?)-", row["id"])
    if row["reference_kind"] in {"table", "figure"} and printed:
        return f"{row['reference_kind'].capitalize()} {printed[1].lower()}"
    return "Text"


def verdict_counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many results have each verdict, in the order of `VERDICTS`; what the paper prints twice counts once."""
    counted = Counter(row["verdict"] for row in rows if row["same_as"] is None)
    return {verdict: counted[verdict] for verdict in VERDICTS}


# --------------------------------------------------------------------------------------------------------------------
# Words


def digits(value: float, unit: str) -> int:
    """Decimals that mean something: three digits of a value; of a share, of what it lacks to all where that is less."""
    size = min(value, 100 - value) if unit.startswith("percent") and unit != "percentage points" and 0 < value < 100 else abs(value)
    if size == 0 or (value == int(value) and size >= 100):
        return 0
    return min(max(0, 2 - math.floor(math.log10(size))), 5)


def number(value: float, unit: str) -> str:
    """A value of a unit, without it."""
    return f"{value:,.{digits(value, unit)}f}"


def with_unit(text: str, unit: str) -> str:
    """A number with its unit, where a sign says it; what is counted is said by the metric."""
    if unit.startswith("percentile"):
        return f"P{text}"
    if unit == "percentage points":
        return f"{text} points"
    return f"{text}%" if unit.startswith("percent") else f"{text}\u00d7" if unit == "ratio" else text


def this_fleet(row: Row) -> str | None:
    """The fleet's value with its unit."""
    return None if row["value"] is None else with_unit(number(row["value"], row["unit"]), row["unit"])


def counted(row: Row) -> str | None:
    """Numerator and denominator; of a percentile the population alone."""
    if row["denominator"] is None:
        return None
    return f"{'' if row['numerator'] is None else human(row['numerator']) + ' '}of {human(row['denominator'])}"


def interval(row: Row) -> str | None:
    """The 95% interval, in the unit of the value and as exact."""
    low, high = row["ci_low"], row["ci_high"]
    if low is None or high is None:
        return None
    decimals = max(digits(end, row["unit"]) for end in (low, high)) if not row["value"] else digits(row["value"], row["unit"])
    return f"{low:,.{decimals}f} to {high:,.{decimals}f}"


def in_the_paper(row: Row) -> str | None:
    """The paper's number as printed there: `0.22%`, `~ 40%`, `\u2265 9\u00d7`, `hundreds`."""
    if row["paper"] is None:
        return None
    operator = OPERATORS.get(row["operator"], f"{row['operator']} ")
    try:
        value = float(row["paper"])
    except ValueError:
        return f"{operator}{row['paper']}"
    text = human(int(value)) if value == int(value) and value >= 1000 else row["paper"]
    return operator + with_unit(text, row["unit"])


def what_is_measured(row: Row) -> str:
    """The metric without the place in the paper that its heading already says."""
    return re.sub(r"^(Finding \d+|Table \w+|Fig(ure)? \w+)( \([^)]*\))?:? +", "", row["metric"])
