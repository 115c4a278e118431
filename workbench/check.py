"""`make check`: what an edit may have broken, in seconds and without a warehouse; `make lint`: style and types of everything.

1. every model that changed, and all that read it, is planned over nothing: columns, types and contracts;
2. the unit tests whose query changed are run in DuckDB (workbench/unit_tests.py);
3. changed files are linted: ruff and mypy for Python, sqlfluff for SQL, plain words for every text (BANNED);
4. a mart, source, page or detector that changed has all its parts (tests/models/test_complete.py).

What has passed is remembered by content in target/compiled/check, so that nothing is checked twice. `--model NAME` checks one model, `--all`
every unit test, `--lint` style and types alone, of all files.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import click
import duckdb

from engine.compiled import compiled_file, digests
from engine.errors import ModelError
from engine.warehouse import PROJECT
from workbench.unit_tests import Project, UnitTest, fleet, prepare, project_folders, run

LINE_LENGTH = 200
"""Of SQL: sqlfluff counts what Jinja makes of a line."""

PYTHON = Path(sys.executable).parent

BANNED = {
    r"(?:description: [\"']?|\"\"\"|^ *(?:#|--|\{#-?) )Of \S": "begin with the noun: `Slow hours among them`",
    r"\bOf (?:them|those|these)\b": "begin with the noun: `Slow hours among them`",
    r"(?:description: [\"']?|\"\"\")What ": "name the thing: `Cost of ...`, `Reason for ...`",
    r"(?:^-- |^ {6}(?: {4})?)What (?!if)": "name the thing: `Cost of ...`, `Reason for ...`",
    r"\b[Ww]hat (?:an? |the |all |each |every |other |its )?\w+(?: \w+)? (?:says?|said|tells?|told) (?:of|about)\b": "`description of`, `readings of`, `verdict on`",
    r"\b(?:which|that|it|they|what) (?:is|are) none\b": "`is not one`, `is not a record`",
    r"\b[Ss]o many (?!that\b)": "`a number of`",
    r"\b(?:anew|[Ww]hoever|hangs? on|held against|lies beside|no word of)\b": "`again`, `the reader`, `depends on`, `compared with`",
    r"\bnobody (?:says|said)\b": "`unknown`",
    r"[Nn]ull where inventory does not say": "`Null where inventory has none`",
    r"description: [\"']?(?:Those|It|The same|Upper end of it|Lower end of its|Which other|Least \(|Likewise)\b|\bThose that are meant\b": "name the thing: `Hours of a parity drive`, `Upper end of the 95% interval of ratio`",
    r"(?:\bdef test_|^  - name: )(?:what(?!_if)|who|it|so|there|of)_\w+(?:\(|$)": "begin with the subject: `a_new_alert_is_sent_once`",
    r"(?:\bdef test_|^  - name: )\w*_(?:told|tells?|sa(?:id|ys?)_to_be|is_said)(?:_\w+)?(?:\(|$)": "replace told or said by the action: `a_new_alert_is_sent_once`",
    r"\bover [a-z]\w* - (?!interval)": "`(sum(x) over name) - y`: Spark reads `name - y` as one name",
    r"\bdef test_\w{66,}": "name subject, condition and result in 70 characters",
}
"""Pattern -> plain words for it. The README's and the models' readers are strangers."""
READ_BY_PEOPLE = (".md", ".yml", ".sql", ".py", ".j2")
WITH_PARTS = (
    *("models/marts/", "models/exposures.yml", "study/models/", "docs/tables.md", "console/", "drivetail/", "report/"),
    *("ingest/sources/", "models/intermediate/detectors/", "dbt_project.yml"),
)
"""Files that have parts elsewhere, or are such parts."""
NOT_OURS = ("docs/results/", "workbench/check.py", "tests/workbench/test_check.py")
"""Not checked for words: generated pages, and the list itself."""
PASSED = compiled_file("duckdb").parent / "check" / "passed.json"


class Passed:
    """Checks that have passed before, by content."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self.known: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.known = {}

    def new(self, kind: str, digests: Iterable[str]) -> set[str]:
        """Those of a kind that have not passed yet."""
        return set(digests) - set(self.known.get(kind, ()))

    def keep(self, kind: str, digests: Iterable[str]) -> None:
        """Remember these as passed, and of their kind no others."""
        self.known[kind] = sorted(set(digests))

    def write(self) -> None:
        """Write it down for the next time."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(self.known), encoding="utf-8")


def files_to_lint(suffix: str, *, is_all: bool) -> list[str]:
    """Paths of the files that differ from the last commit or that git does not know yet, or of all."""
    changed = ["ls-files"] if is_all else ["diff", "--name-only", "--diff-filter=d", "HEAD"]
    found: set[str] = set()
    for command in (changed, ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command], cwd=PROJECT, capture_output=True, text=True, check=True)
        found |= {name for name in done.stdout.split("\n") if name.endswith(suffix)}
    return sorted(name for name in found if (PROJECT / name).exists())


def lint_python(passed: Passed, *, is_all: bool) -> str | None:
    """Ruff over the files that have changed, or all, and mypy, which remembers by itself. Returns: what is wrong; None where nothing is."""
    digests = {name: hashlib.sha256((PROJECT / name).read_bytes()).hexdigest() for name in files_to_lint(".py", is_all=is_all)}
    new = [name for name, digest in digests.items() if is_all or passed.new("python", [digest])]
    # as few arguments as may be: all files are a folder
    of = ["."] if is_all else new
    commands = [["ruff", "check", "--quiet", *of], ["ruff", "format", "--check", "--quiet", *of], ["mypy", "--no-error-summary"]]
    for command in commands if new else ():
        done = subprocess.run([PYTHON / command[0], *command[1:]], cwd=PROJECT, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{' '.join(command[:2])}\n{done.stdout}{done.stderr}".rstrip()
    passed.keep("python", digests.values())
    return None


def lint_sql(passed: Passed, *, is_all: bool) -> str | None:
    """Sqlfluff over the models that have changed, or all, but those that have passed by these rules. Returns: what is wrong; None where
    nothing is.
    """
    files = [name for name in files_to_lint(".sql", is_all=is_all) if "models" in Path(name).parts]
    settings = [PROJECT / ".sqlfluff", PROJECT / "workbench/sqlfluff/adapter.py"]
    rules = metadata.version("sqlfluff").encode() + b"".join(file.read_bytes() for file in settings)
    digests = {name: hashlib.sha256(rules + (PROJECT / name).read_bytes()).hexdigest() for name in files}
    new = [name for name, digest in digests.items() if passed.new("sql", [digest])]
    wrong = [
        f"{name}:{number}: {len(line)} characters; {LINE_LENGTH} at most"
        for name in new
        for number, line in enumerate((PROJECT / name).read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > LINE_LENGTH
    ]
    if new and not wrong:
        command: list[str | Path] = [PYTHON / "sqlfluff", "lint", "--processes", "2", "--disable-progress-bar", *new]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        if done.returncode:
            wrong.append(f"sqlfluff lint\n{done.stdout}{done.stderr}".rstrip())
    if wrong:
        return "\n".join(wrong)
    passed.keep("sql", {*passed.known.get("sql", ()), *digests.values()} if not is_all else digests.values())
    return None


def banned(name: str, text: str) -> list[str]:
    """Words of BANNED in a text: its name, line, the words and plain ones. Quotations of the contract (`> `) may have them."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if '"""> ' not in line]
    found = ((number, re.search(pattern, line), plain) for number, line in lines for pattern, plain in BANNED.items())
    return [f"{name}:{number}: {match[0].strip()!r}; plain words are {plain}" for number, match, plain in found if match]


def lint_words(passed: Passed, *, is_all: bool) -> str | None:
    """Look for banned words in the texts that have changed, or in all. Returns: what is wrong; None where nothing is."""
    files = (name for suffix in READ_BY_PEOPLE for name in files_to_lint(suffix, is_all=is_all) if not name.startswith(NOT_OURS))
    return "\n".join(each for name in files for each in banned(name, (PROJECT / name).read_text(encoding="utf-8"))) or None


def lint_parts(passed: Passed, *, is_all: bool) -> str | None:
    """Look for parts that a changed mart or source lacks, or any. Returns: what is missing; None where nothing is."""
    files = sorted({name for suffix in (".sql", ".yml", ".md", ".py") for name in files_to_lint(suffix, is_all=is_all)})
    files = [name for name in files if name.startswith(WITH_PARTS)]
    digest = hashlib.sha256(b"".join((PROJECT / name).read_bytes() for name in files)).hexdigest()
    if not files or not passed.new("parts", [digest]):
        return None
    command: list[str | Path] = [
        PYTHON / "pytest",
        "-q",
        "-n",
        "0",
        "--tb=line",
        "--no-header",
        "--durations=0",
        "tests/models/test_complete.py",
    ]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        return "\n".join(dict.fromkeys(re.findall(r"AssertionError: (.*)", done.stdout))) or done.stdout
    passed.keep("parts", [digest])
    return None


def unit_tests(project: Project, passed: Passed, model: str | None, *, is_all: bool) -> tuple[list[UnitTest], list[str]]:
    """Run the unit tests of one model, or those whose query has changed. Returns: those that ran, and what differs, by test."""
    tests = project.unit_tests(lambda name: model in (None, name))
    new = passed.new(f"unit tests of {project.name}", (test.digest for test in tests))
    chosen = [test for test in tests if model or is_all or test.digest in new]
    failed: dict[str, str] = {}
    with duckdb.connect() as connection:
        prepare(connection)
        for test in chosen:
            difference = run(connection, test)
            if difference is not None:
                failed[test.digest] = f"{test.path}: {test.model}, {test.name}: - expected, + actual\n{difference}"
    if model is None:
        passed.keep(f"unit tests of {project.name}", (test.digest for test in tests if test.digest not in failed))
    return chosen, list(failed.values())


def check_models(passed: Passed, model: str | None, *, is_all: bool) -> list[str]:
    """Plan the models of the projects that have changed and run their unit tests. Returns: what is wrong."""
    planned, ran = 0, 0
    wrong: list[str] = []
    try:
        for place in project_folders():
            if not model and not is_all and not passed.new("projects", [_digest(place)]):
                continue
            project = fleet() if place == PROJECT else Project(place)
            if model and model not in {node.name for node in project.models}:
                continue
            planned += len(project.types)
            run_now, failures = unit_tests(project, passed, model, is_all=is_all)
            ran += len(run_now)
            wrong += failures
            if model:
                break
        if model and not planned:
            raise ModelError(f"no model is named {model!r}")
    except ModelError as error:
        return [re.sub(r"\n\s*\n", "\n", str(error))]
    click.echo(f"{planned} relations planned, {ran} unit tests run, {len(wrong)} failed")
    if not model and not wrong:
        passed.keep("projects", [_digest(place) for place in project_folders()])
    return wrong


def _digest(place: Path) -> str:
    """Changes when a project does, or the fleet's, which it may read."""
    return digests()[0] + digests(place)[0]


@click.command()
@click.option("--model", metavar="NAME", help="Check one model alone: its columns and its unit tests.")
@click.option("--all", "is_all", is_flag=True, help="Check everything, whatever has passed before.")
@click.option("--lint", "is_lint", is_flag=True, help="Check style and types alone, of all files.")
@click.option("--words", "is_words", is_flag=True, help="Check the words of changed texts alone.")
def main(model: str | None, is_all: bool, is_lint: bool, is_words: bool) -> None:
    """Check what an edit may have broken: models, unit tests, lint."""
    began = time.monotonic()
    passed = Passed(PASSED)
    wrong: list[str] = []
    if is_words:
        sys.exit(lint_words(passed, is_all=False))
    with ThreadPoolExecutor(2 if is_lint else 1) as beside:
        # mypy and sqlfluff are processes of their own: they run while dbt compiles
        lints = (lint_sql, lint_python, lint_words) if is_lint else (lint_sql, lint_python, lint_words, lint_parts)
        linted = [] if model else [beside.submit(lint, passed, is_all=is_lint) for lint in lints]
        if not is_lint:
            wrong += check_models(passed, model, is_all=is_all)
        wrong += [said for each in linted if (said := each.result())]
    passed.write()
    for said in wrong:
        click.echo(f"\n{said}", err=True)
    click.echo(f"{'Not all is well' if wrong else 'All is well'}: {time.monotonic() - began:.1f} s")
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
