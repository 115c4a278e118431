"""A mart, source or detector that lacks a part which CONTRIBUTING asks for fails here, and the failure names what to add."""

import csv
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from console.pages import rooms
from engine.compiled import models_of
from engine.nodes import SEED, Node
from engine.projects import built_models, projects, published_schemas
from engine.thresholds import variables
from ingest.contract.fleet import COLUMNS_OF_RAW
from ingest.sources import SOURCES
from report.page.numbers import DETECTOR_WORDS
from tests.reference import COVERED

ROOT = Path(__file__).parents[2]
MODELS = built_models({})
OF_FLEET = {node.name for node in models_of()}
MARTS = {node.name: node for node in MODELS if node.schema in published_schemas() and node.made != SEED}
ONLY_SELECTS = re.compile(r"(?:\s|--.*\n)*select\s+[\w\s,*\"]+\sfrom\s+[\w.\"]+\s*")
"""SQL of a mart that takes columns of another model as they are: that model's unit tests are its own."""
ONE_MACRO = re.compile(r"(?:--.*\n)+\{\{ (\w+)\(.*\) \}\}\n")
"""A mart that is one macro: of several, the unit test of one is that of all."""
MOST_PUBLIC = 43
"""Relations of schema `marts`: each keeps its name and columns within a minor release."""
NAMED = set(re.findall(r"`([a-z_0-9*.]+)`", (ROOT / "docs/tables.md").read_text(encoding="utf-8")))


def macro_of(sql: Path) -> str | None:
    """The macro that a mart is; None for one that has SQL of its own."""
    found = ONE_MACRO.fullmatch(sql.read_text(encoding="utf-8"))
    return found and found[1]


PROPERTIES = {(ROOT / node.path).with_suffix(".yml") for node in MARTS.values()}
TESTED = [file for file in PROPERTIES if "\nunit_tests:" in file.read_text(encoding="utf-8")]
TESTED_MACROS = {macro_of(file.with_suffix(".sql")) for file in TESTED} - {None}


def missing_parts(mart: Node) -> list[str]:
    """Missing parts of a mart, each as an instruction."""
    file = (ROOT / mart.path).with_suffix(".yml")
    properties = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    undescribed = sorted(set(mart.columns) - set(mart.descriptions))
    parts = {
        "a description in its .yml": bool(mart.description),
        f"descriptions of {', '.join(undescribed)} in its .yml": not undescribed,
        "an enforced contract: a data_type for each column": mart.has_contract and bool(mart.columns),
        "a unit test in its .yml": ONLY_SELECTS.fullmatch(mart.sql)
        or "unit_tests" in properties
        or macro_of(ROOT / mart.path) in TESTED_MACROS,
        "its owner and grain in `meta`": {"owner", "grain"} <= mart.meta.keys(),
        "a line in docs/tables.md": any(fnmatchcase(mart.relation.removeprefix("marts."), name) for name in NAMED),
        "the exposure that reads it in models/exposures.yml of its project": mart.relation in MODELS.exposed,
    }
    return [part for part, is_there in parts.items() if not is_there]


@pytest.mark.parametrize("name", MARTS)
def test_a_mart_has_all_its_parts(name: str) -> None:
    missing = missing_parts(MARTS[name])
    assert not missing, f"{MARTS[name].path}: add {'; '.join(missing)}"


def test_marts_holds_little_more_than_what_is_promised() -> None:
    count = sum(mart.schema == "marts" for mart in MARTS.values())
    assert count <= MOST_PUBLIC, (
        f"models/marts: {count} public marts, {MOST_PUBLIC} at most. Put an input of a page or command into models/marts/report or status, "
        "and a sum that one `group by` answers into docs/cookbook.md; for another mart raise MOST_PUBLIC in tests/models/test_complete.py"
    )


def test_the_reference_computes_marts_that_exist() -> None:
    assert MARTS.keys() >= COVERED


def test_each_missing_part_of_a_mart_is_named() -> None:
    bare = replace(MARTS["fct_raid_hours"], name="fct_nothing", description="", descriptions={}, has_contract=False, meta={})
    words = ("a description", "descriptions of", "contract", "owner and grain", "docs/tables.md", "exposure")
    missing = missing_parts(bare)
    assert len(missing) == len(words) and all(word in part for word, part in zip(words, missing, strict=True))


def test_each_model_that_a_page_or_command_asks_is_in_its_exposure() -> None:
    files = [place / "models/exposures.yml" for place in (ROOT, *(project.FOLDER for project in projects() if project.READS_FLEET))]
    exposures = [each for file in files for each in yaml.safe_load(file.read_text(encoding="utf-8"))["exposures"]]
    stated = {exposure["name"]: set(re.findall(r"'(\w+)'\)", " ".join(exposure["depends_on"]))) for exposure in exposures}
    readers = (("weekly_fleet_report", "report/weekly"), ("study_page", "study/pages"), ("commands", "drivetail"), ("commands", "console"))
    for name, folder in readers:
        text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".yml"))
        asked = set(re.findall(rf"\b(?:from|join)\s+(?:{'|'.join(published_schemas())})\.(\w+)", text)) & MARTS.keys()
        asked -= set() if name == "study_page" else MARTS.keys() - OF_FLEET
        assert asked <= stated[name], f"models/exposures.yml, {name}: add {', '.join(sorted(asked - stated[name]))}"


def test_each_page_of_the_menu_is_asked_for_in_tests() -> None:
    tested = (ROOT / "tests/console/test_console.py").read_text(encoding="utf-8")
    missing = [address for address in rooms(None).values() if f'"{address}"' not in tested]
    assert not missing, f"tests/console/test_console.py, ALL_PAGES: add {', '.join(missing)}"


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_has_all_its_parts(name: str) -> None:
    module = name.replace("-", "_")
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests/ingest").glob("test_*.py")]
    parts = {
        f"ingest/sources/{module}.py, or a package of that name": any((ROOT / "ingest/sources").glob(f"{module}*")),
        f"docs/sources/{name}.md": (ROOT / f"docs/sources/{name}.md").is_file(),
        "its page to the table of README.md": f"docs/sources/{name}.md" in (ROOT / "README.md").read_text("utf-8"),
        "a test of malformed input in tests/ingest": any(f'"{name}"' in text for text in tests),
        "a delivery in tests/ingest/test_any_delivery.py": f'"{name}"' in (ROOT / "tests/ingest/test_any_delivery.py").read_text("utf-8"),
        "deliveries for the gate in tests/quality/test_sources.py": module in (ROOT / "tests/quality/test_sources.py").read_text("utf-8"),
    }
    missing = [part for part, is_there in parts.items() if not is_there]
    assert not missing, f"source {name}: add {'; '.join(missing)}"


def _detectors() -> tuple[list[str], set[str]]:
    """Names of detectors, stated or with rows in the worked example of the verdicts; and those with rows."""
    file = ROOT / "models/intermediate/detectors/int_detector_verdicts.yml"
    (example,) = yaml.safe_load(file.read_text(encoding="utf-8"))["unit_tests"]
    shown = {row["detector"] for row in csv.DictReader(example["expect"]["rows"].splitlines())}
    return sorted({*variables()["detectors"], *shown}), shown


@pytest.mark.parametrize("name", _detectors()[0])
def test_a_detector_has_all_its_parts(name: str) -> None:
    parts = {
        "its name to `detectors` of dbt_project.yml": name in variables()["detectors"],
        "its rows to the unit test in models/intermediate/detectors/int_detector_verdicts.yml": name in _detectors()[1],
        "its rule to models/marts/detectors/fct_detector_verdicts.yml": f"`{name}`" in MARTS["fct_detector_verdicts"].description,
        "its row to docs/detectors.md": re.search(rf"^\|.*`{name}`", (ROOT / "docs/detectors.md").read_text("utf-8"), re.MULTILINE),
        "its words to DETECTOR_WORDS in report/page/numbers.py": name in DETECTOR_WORDS,
    }
    missing = [part for part, is_there in parts.items() if not is_there]
    assert not missing, f"detector {name}: add {'; '.join(missing)}"


def test_a_described_column_of_raw_is_one_that_ingest_writes() -> None:
    described = yaml.safe_load((ROOT / "models/staging/_raw__sources.yml").read_text(encoding="utf-8"))["sources"][0]["tables"]
    columns = {f"raw.{table['name']}": {column["name"] for column in table.get("columns", ())} for table in described}
    for name, written in COLUMNS_OF_RAW.items():
        assert columns[name] <= written.keys(), name
