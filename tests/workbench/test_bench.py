"""The bench runs on small fleets, and its yardsticks agree with each other."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from console.ask import cookbook
from workbench.bench import PARTS, TITLES, written
from workbench.measure import measure
from workbench.parts import Bound, Section, Setting
from workbench.parts.day import TEXT, answer, run_script
from workbench.parts.spark import exchanges, read_event_log, tree
from workbench.yardsticks import SCRIPTS
from workbench.yardsticks.compare import compare_slowdowns


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("bench"), repetitions=1, small=True, scale_days=3)


def test_scripts_give_equal_slowdowns(setting: Setting) -> None:
    names = list(SCRIPTS)
    for name in names:
        run_script(name, setting)
    for name in names[1:]:
        rows, differing = compare_slowdowns(answer(TEXT, setting), answer(name, setting))
        assert rows > 1_000
        assert differing == 0, name


@pytest.mark.soak
def test_commands_and_their_bounds(setting: Setting) -> None:
    (section,) = PARTS["commands"](setting)
    assert section.title in TITLES
    assert len(section.bounds) == 9
    assert "| `drivetail status` |" in written(section, "now")


@pytest.mark.soak
def test_experiments_of_the_lab_and_their_bounds(setting: Setting) -> None:
    (section,) = PARTS["lab"](setting)
    assert section.title in TITLES
    assert [bound.limit for bound in section.bounds] == [120, 8, 30]
    assert len([line for line in section.lines if "lab ingest" in line or "lab build" in line]) == 4


def test_a_bound_says_whether_it_holds() -> None:
    text = written(Section("Title", ["a line"], [Bound("wall time", 2.5, 2, "x", 1.5), Bound("peak", 1, 8, "GiB")]), "begun")
    assert text == (
        "## Title\n\nbegun\n\n- wall time: **2.50x** (at most 2x, aim 1.5x): FAILS\n- peak: **1.00 GiB** (at most 8 GiB): holds\n\na line\n"
    )


def test_the_cookbook_has_its_questions() -> None:
    questions = cookbook()
    assert len(questions) >= 20
    assert all(sql.lstrip().startswith(("select", "with")) for sql in questions.values())


@pytest.mark.skipif(not find_spec("pyspark"), reason="pyspark is not installed")
@pytest.mark.soak
def test_a_day_on_spark_is_that_of_duckdb(setting: Setting) -> None:
    for section in PARTS["spark"](setting):
        assert section.title in TITLES
        assert section.bounds[-1].value == 0
        assert "| Spark, `local[2]` |" in written(section, "now")


PLAN = """== Physical Plan ==
AdaptiveSparkPlan (9)
+- == Final Plan ==
   +- Execute InsertIntoHadoopFsRelationCommand (5)
      +- HashAggregate (4)
         +- Exchange (3)
            +- * Project (2)
               +- Scan parquet (1)
+- == Initial Plan ==
   +- Exchange (8)


(3) Exchange
Input [2]: [raid_group_id#1, hour_utc#2]
Arguments: hashpartitioning(raid_group_id#1, hour_utc#2L, 8), ENSURE_REQUIREMENTS, [plan_id=7]

(5) Execute InsertIntoHadoopFsRelationCommand
Arguments: file:/store/int_drive_days, false, [day_utc#3]

(8) Exchange
Arguments: hashpartitioning(drive_id#1, 8), ENSURE_REQUIREMENTS, [plan_id=6]
"""


def test_an_event_log_gives_the_heaviest_model_and_what_it_shuffles(tmp_path: Path) -> None:
    def task(stage: int, run_ms: int, written: int) -> dict[str, object]:
        metrics = {"Executor Run Time": run_ms, "Shuffle Write Metrics": {"Shuffle Bytes Written": written}}
        return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}

    stages = [{"Stage ID": 1}, {"Stage ID": 2}]
    in_memory = (
        "(5) Execute InsertIntoHadoopFsRelationCommand\nArguments: file:/spark/tables/intermediate.int_raid_hours__medians, false, Parquet"
    )
    events = [
        {"Event": "a.SparkListenerSQLExecutionStart", "executionId": 4, "physicalPlanDescription": PLAN},
        {"Event": "SparkListenerJobStart", "Stage Infos": stages[:1], "Properties": {"spark.sql.execution.id": "4"}},
        {"Event": "SparkListenerJobStart", "Stage Infos": stages[1:], "Properties": {}},
        {"Event": "a.SparkListenerSQLExecutionStart", "executionId": 5, "physicalPlanDescription": in_memory},
        {"Event": "SparkListenerJobStart", "Stage Infos": [{"Stage ID": 3}], "Properties": {"spark.sql.execution.id": "5"}},
        *(task(1, 2000, 10), task(1, 3000, 20), task(2, 4000, 5), task(3, 1000, 0)),
    ]
    (tmp_path / "log").write_text("".join(json.dumps(event) + "\n" for event in events))
    log = read_event_log(tmp_path)
    assert log.by_model() == [("int_drive_days", 5.0, 30), ("(queries of the build)", 4.0, 5), ("int_raid_hours__medians", 1.0, 0)]
    assert (log.task_seconds, log.shuffled_bytes, log.heaviest().seconds) == (10.0, 35, [2.0, 3.0])
    assert exchanges(log.plans[4]) == ["hashpartitioning(raid_group_id, hour_utc, 8)"]
    assert [line.split()[-2] for line in tree(log.plans[4])] == [
        "InsertIntoHadoopFsRelationCommand",
        "HashAggregate",
        "Exchange",
        "parquet",
    ]


def test_a_measured_process_sees_the_environment_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_AFTER_IMPORT", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import os; assert os.environ['SET_AFTER_IMPORT'] == '1' and 'PYTHONDONTWRITEBYTECODE' not in os.environ"
    assert measure(sys.executable, "-c", code).seconds > 0
