"""`make mutants`: faults are planted, one at a time, and the tests have to find them.

Faults of the models are made from their SQL. dbt compiles every unit test once; from then on a fault is one changed node of the compiled
SQL (macros included), and the unit tests of that model run on it in DuckDB, without dbt. A fault that changes no result of any of them
survives: a unit test is missing, or the fault changes nothing (mutants_equivalent.yml says which, and why).
All faults of all models take about 35 minutes of CPU time; `--per-model` draws a sample, `--models` names the models.
Writes docs/results/mutants.md and mutants_*.csv after a run over all models. Exits 1 when a fault survives.
"""

from __future__ import annotations

import argparse
import csv
import random
import shlex
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
import yaml
from sqlglot import exp

from workbench.commit import ROOT, current_commit
from workbench.unit_tests import ACTUAL, FIXTURE, Project, UnitTest, prepare, project_folders

RESULT = ROOT / "docs/results/mutants.md"
VERDICTS = ("killed", "equivalent", "invalid", "survived")
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.yml")
SWAPPED: dict[str, dict[type[exp.Expr], type[exp.Expr]]] = {
    "boundary": {exp.GT: exp.GTE, exp.GTE: exp.GT, exp.LT: exp.LTE, exp.LTE: exp.LT},
    "arithmetic": {exp.Add: exp.Sub, exp.Sub: exp.Add, exp.Mul: exp.Div, exp.Div: exp.Mul},
    "logic": {exp.And: exp.Or, exp.Or: exp.And},
    "aggregate": {
        exp.Min: exp.Max, exp.Max: exp.Min, exp.Sum: exp.Max, exp.Avg: exp.Max, exp.Median: exp.Max,
        exp.ArgMin: exp.ArgMax, exp.ArgMax: exp.ArgMin, exp.Least: exp.Greatest, exp.Greatest: exp.Least,
    },
    "window": {exp.Lag: exp.Lead, exp.Lead: exp.Lag},
}  # fmt: skip
"""Kinds of faults that put one operator or function in the place of another."""


@dataclass(frozen=True)
class Fault:
    """One changed node of a model: the CTE it stands in, its number among the nodes of its kind there, and the text before and after."""

    model: str
    kind: str
    cte: str
    number: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.cte}: {self.before} → {self.after}"


def capture(folder: Path, models: Sequence[str]) -> dict[str, list[UnitTest]]:
    """Unit tests of the models (all: empty), by model. folder: for dbt's files."""
    tests: dict[str, list[UnitTest]] = defaultdict(list)
    for place in project_folders():
        for test in Project(place, folder / place.name).unit_tests(lambda model: not models or model in models):
            tests[test.model].append(test)
    return dict(tests)


def parts(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """The nodes of the model itself, each with the CTE it stands in: not the fixtures, not what dbt wraps around them."""
    actual = next(cte for cte in tree.find_all(exp.CTE) if cte.alias == ACTUAL)
    root = actual.find(exp.Subquery).this  # type: ignore[union-attr]

    def walk(node: exp.Expr, cte: str) -> Iterator[tuple[str, exp.Expr]]:
        if isinstance(node, exp.CTE):
            if node.alias.startswith(FIXTURE):
                return
            cte = node.alias
        yield cte, node
        for child in node.iter_expressions():
            yield from walk(child, cte)

    return walk(root, "final select")


Change = Callable[[Any], exp.Expr | None]


def without(name: str) -> Change:
    """Empty an argument of a node."""
    return lambda node: node.set(name, None) or node


def without_key(number: int) -> Change:
    """A window without one key of its partition."""
    return lambda node: node.args["partition_by"][number].pop() and node


def swap(to: type[exp.Expr]) -> Change:
    """Another operator or function over the same arguments."""
    return lambda node: to(**{name: value for name, value in node.args.items() if name in to.arg_types})


def swap_results(case: exp.Case) -> exp.Case:
    """The results of the first two branches change places."""
    first, *ifs = case.args["ifs"]
    one, other = first.args["true"], ifs[0].args["true"] if ifs else case.args["default"]
    kept = one.copy()
    one.replace(other.copy())
    other.replace(kept)
    return case


def changes(node: Any) -> Iterator[tuple[str, Change]]:
    """Changes of a node, by kind of fault: a function of its copy that returns what takes its place, or None to take it away."""
    for kind, swapped in SWAPPED.items():
        if type(node) in swapped:
            yield kind, swap(swapped[type(node)])
    if isinstance(node, exp.And | exp.Or):
        yield "dropped term", lambda node: node.this
        if type(node.this) is not type(node):  # of a and b and c each goes once
            yield "dropped term", lambda node: node.expression
    if isinstance(node, exp.Where | exp.Having | exp.Qualify):
        yield "dropped term", lambda _: None
    if isinstance(node, exp.Filter):
        yield "dropped term", lambda node: node.this
    if isinstance(node, exp.Join) and node.side == "LEFT":
        yield "join", without("side")
    if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select):
        yield "distinct", lambda _: None
    if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Count) and len(node.expressions) == 1:
        yield "distinct", lambda node: node.expressions[0]
    if isinstance(node, exp.Union):
        yield "distinct", lambda node: node.set("distinct", not node.args.get("distinct")) or node
    if isinstance(node, exp.Window):
        for number in range(len(node.args.get("partition_by") or ())):
            yield "window", without_key(number)
    if isinstance(node, exp.Ordered) and not isinstance(node.find_ancestor(exp.Window, exp.AggFunc, exp.Select), exp.Select):
        yield "order", lambda node: node.set("desc", not node.args.get("desc")) or node
    if isinstance(node, exp.Literal) and not node.is_string and is_counted(node):
        yield "literal", lambda node: exp.Literal.number(int(node.this) + 1 if node.is_int else float(node.this) + 1)
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.this.this.isdigit():
        yield "literal", lambda node: node.set("this", exp.Literal.string(int(node.this.this) + 1)) or node
    if isinstance(node, exp.Case) and (len(node.args["ifs"]) > 1 or node.args.get("default")):
        yield "case", swap_results
    if isinstance(node, exp.Coalesce):
        yield "coalesce", lambda node: node.this
    if isinstance(node, exp.Is | exp.Exists | exp.In) and not isinstance(node.parent, exp.Not):
        yield "negation", lambda node: exp.Not(this=exp.Paren(this=node))
    if isinstance(node, exp.Not):
        yield "negation", lambda node: node.this


def is_counted(literal: exp.Literal) -> bool:
    """Whether one more would say something: not a length of a type, not the 1 of count(case ... then 1 end), not a bound beyond any value."""
    parent = literal.parent
    if isinstance(parent, exp.DataTypeParam | exp.Ordered | exp.Interval | exp.Select) or float(literal.this) > 1e9:
        return False
    return not (
        isinstance(parent, exp.If)
        and literal.arg_key == "true"
        and literal.find_ancestor(exp.Count, exp.Select, exp.Sum).__class__ is exp.Count
    )


class Compiled:
    """The SQL of a unit test, read once, and its places for faults: the node's number in the tree, the number of the change."""

    def __init__(self, sql: str) -> None:
        self.tree = sqlglot.parse_one(sql, read="duckdb")
        self.places: dict[tuple[str, str, int], tuple[int, int]] = {}
        numbers: Counter[tuple[str, str]] = Counter()
        for at, (cte, node) in enumerate(parts(self.tree)):
            for number, (kind, _) in enumerate(changes(node)):
                self.places[cte, kind, numbers[cte, kind]] = at, number
                numbers[cte, kind] += 1

    def change(self, tree: exp.Expr, place: tuple[int, int]) -> tuple[exp.Expr, exp.Expr | None]:
        """A node of the tree, or of a copy of it, and what takes its place."""
        at, number = place
        _, node = next(islice(parts(tree), at, None))
        _, change = next(islice(changes(node), number, None))
        return node, change(node.copy())

    def plant(self, place: tuple[int, int]) -> str:
        """The SQL with one change."""
        tree = self.tree.copy()
        node, made = self.change(tree, place)
        if made is None:
            node.pop()
        else:
            nested = isinstance(made, exp.Binary) and isinstance(node.parent, exp.Binary | exp.Not)
            node.replace(exp.Paren(this=made) if nested else made)
        return tree.sql(dialect="duckdb")

    def texts(self, place: tuple[int, int]) -> tuple[str, str]:
        """The text of a place before and after; a number is shown with its surroundings."""
        node, made = self.change(self.tree, place)
        if isinstance(node, exp.Connector) and made in (node.this, node.expression):
            dropped = node.expression if made == node.this else node.this
            return f"{node.key} {shown(dropped)}", "(taken away)"
        around = f"{shown(node.parent)}: " if isinstance(node, exp.Literal) and node.parent else ""
        return around + shown(node), "(taken away)" if made is None else shown(made)


def faults(model: str, tests: Sequence[Compiled]) -> list[Fault]:
    """Every fault of a model that a unit test runs through, in the order of its SQL; where a macro repeats a text in a CTE, in the first place."""
    found: dict[tuple[str, str, int], Fault] = {}
    texts = set()
    for test in tests:
        for (cte, kind, number), place in test.places.items():
            if (cte, kind, number) in found:
                continue
            before, after = test.texts(place)
            fault = Fault(model, kind, cte, number, before, after)
            if before != after and (kind, str(fault)) not in texts:
                found[cte, kind, number] = fault
            texts.add((kind, str(fault)))
    return list(found.values())


def shown(node: exp.Expr) -> str:
    """A node as text on one line, without what the names of fixtures begin with."""
    text = " ".join(node.sql(dialect="duckdb").split()).replace(FIXTURE, "")
    return text if len(text) <= 140 else f"{text[:90]} ... {text[-45:]}"


def holds(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether the actual rows of a unit test equal the expected ones, in any order."""
    rows: dict[str, Counter[str]] = {"actual": Counter(), "expected": Counter()}
    for *row, which in connection.execute(sql).fetchall():
        rows[which][repr(row)] += 1
    return rows["actual"] == rows["expected"]


def judge(connection: duckdb.DuckDBPyConnection, fault: Fault, tests: Sequence[Compiled]) -> str:
    """Run a model's unit tests with a fault in it. Returns: `killed`, `survived`, or `invalid` when DuckDB refuses the SQL before running it."""
    for test in tests:
        place = test.places.get((fault.cte, fault.kind, fault.number))
        if place is None:  # vars that the test overrides may drop it
            continue
        try:
            if not holds(connection, test.plant(place)):
                return "killed"
        except (duckdb.BinderException, duckdb.ParserException, duckdb.CatalogException):
            return "invalid"
        except duckdb.Error:
            return "killed"
    return "survived"


def is_equivalent(fault: Fault, known: Mapping[str, Sequence[dict[str, str]]]) -> bool:
    """Whether a fault is known to change nothing: patterns of mutants_equivalent.yml match its model and its text."""
    pairs = (pair for listed in known.values() for each in listed for pair in each.items())
    return any(fnmatchcase(fault.model, model) and fnmatchcase(str(fault), text) for model, text in pairs)


@dataclass
class Outcome:
    """Verdicts on a model's faults."""

    model: str
    fault_count: int
    judged: list[tuple[Fault, str]]
    seconds: float

    def count(self) -> Counter[str]:
        """Number of faults tried, by verdict."""
        return Counter(verdict for _, verdict in self.judged)


def run_models(tests: dict[str, list[UnitTest]], per_model: int, seed: int) -> Iterator[Outcome]:
    """Plant the faults of each model, or a seeded sample of `per_model` of them (0: all)."""
    known = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))
    with duckdb.connect(config={"threads": 1}) as connection:
        prepare(connection)
        for model, of_model in sorted(tests.items()):
            begun = time.monotonic()
            compiled = [Compiled(test.sql) for test in of_model]
            for test, read in zip(of_model, compiled, strict=True):
                if not holds(connection, read.tree.sql(dialect="duckdb")):
                    raise SystemExit(f"{model}: {test.name} fails once sqlglot has read and written its SQL: no fault of it can be judged")
            made = faults(model, compiled)
            number = min(per_model or len(made), len(made))
            chosen = set(random.Random(f"{seed} {model}").sample(range(len(made)), number))
            judged = []
            for fault in (fault for place, fault in enumerate(made) if place in chosen):
                verdict = judge(connection, fault, compiled)
                judged.append((fault, "equivalent" if verdict == "survived" and is_equivalent(fault, known) else verdict))
            yield Outcome(model, len(made), judged, time.monotonic() - begun)


def page(outcomes: Sequence[Outcome], per_model: int, seed: int, untested: Sequence[str]) -> str:
    """docs/results/mutants.md: how many faults there are, were tried, found and survived, by kind."""
    sample = f"at most {per_model} of each model, drawn with seed {seed}" if per_model else "all of them"
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        for fault, verdict in outcome.judged:
            by_kind[fault.kind][verdict] += 1
    total = sum(by_kind.values(), Counter())
    lines = [
        "# Seeded faults",
        "",
        "Do the unit tests of the models notice a fault in the SQL? A fault is one change: another operator, another number, a condition removed.",
        "",
        f"`{shlex.join(['python', '-m', 'workbench.mutants', *sys.argv[1:]])}`, commit {current_commit()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.",
        "",
        "| | faults |",
        "|---|--:|",
        f"| in the {len(outcomes)} models with unit tests | {sum(outcome.fault_count for outcome in outcomes)} |",
        f"| tried: {sample} | {total.total()} |",
        f"| of them found by a unit test | {total['killed']} |",
        f"| equivalent: they change no result (`workbench/mutants_equivalent.yml` says why) | {total['equivalent']} |",
        f"| no valid SQL | {total['invalid']} |",
        f"| **survived**: no unit test notices them | **{total['survived']}** |",
        "",
        f"{len(untested)} models have no unit test.",
        "[mutants_models.csv](mutants_models.csv) has the counts of each model, [mutants_survivors.csv](mutants_survivors.csv) each fault that survived.",
        "The comparison of all marts with the reference (`make test`) may notice a fault that no unit test does.",
        "",
        "| kind of fault | tried | survived |",
        "|---|--:|--:|",
        *(f"| {kind} | {count.total()} | {count['survived']} |" for kind, count in sorted(by_kind.items())),
    ]
    return "\n".join(lines) + "\n"


def model_rows(outcomes: Sequence[Outcome], untested: Sequence[str]) -> list[list[Any]]:
    """docs/results/mutants_models.csv: a row per model, most survivors first; those without a unit test have no counts."""
    found = sorted(outcomes, key=lambda each: (-each.count()["survived"], each.model))
    rows = [[each.model, each.fault_count, len(each.judged), *(each.count()[verdict] for verdict in VERDICTS)] for each in found]
    return [
        ["model", "faults", "tried", "found", "equivalent", "no_valid_sql", "survived"],
        *rows,
        *([model] + [""] * 6 for model in untested),
    ]


def survivor_rows(outcomes: Sequence[Outcome]) -> list[list[Any]]:
    """docs/results/mutants_survivors.csv: a row per fault that no unit test notices."""
    faults = [fault for outcome in outcomes for fault, verdict in outcome.judged if verdict == "survived"]
    return [["model", "kind", "fault"], *([fault.model, fault.kind, str(fault)] for fault in faults)]


def write_csv(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=[], help="only these models; docs/results/ is left alone")
    parser.add_argument(
        "--per-model", type=int, default=0, help="try at most this many faults of each model, drawn by the seed; 0: all of them"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        tests = capture(Path(name), options.models)
        outcomes = []
        for outcome in run_models(tests, options.per_model, options.seed):
            outcomes.append(outcome)
            verdicts = ", ".join(f"{number} {what}" for what, number in sorted(outcome.count().items()))
            print(
                f"{outcome.seconds:6.1f} s  {outcome.model}: {len(outcome.judged)} of {outcome.fault_count} faults: {verdicts}", flush=True
            )
            for fault, verdict in outcome.judged:
                if verdict == "survived":
                    print(f"          {fault.kind}: {fault}", flush=True)
    if not options.models:
        untested = sorted({path.stem for place in project_folders() for path in (place / "models").rglob("*.sql")} - set(tests))
        RESULT.write_text(page(outcomes, options.per_model, options.seed, untested), encoding="utf-8")
        write_csv(RESULT.with_name("mutants_models.csv"), model_rows(outcomes, untested))
        write_csv(RESULT.with_name("mutants_survivors.csv"), survivor_rows(outcomes))
    survivors = sum(verdict == "survived" for outcome in outcomes for _, verdict in outcome.judged)
    sys.exit(f"{survivors} faults survive" if survivors else 0)


if __name__ == "__main__":
    main()
