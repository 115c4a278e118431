"""The bench runs on small fleets, and its yardsticks agree with each other."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from workbench.bench import PARTS, written
from workbench.measure import measure
from workbench.parts import Bound, Section, Setting
from workbench.parts.day import PANDAS, SKETCH, answer, run_script
from workbench.parts.spark import Stage, read_event_log
from workbench.yardsticks import SCRIPTS
from workbench.yardsticks.compare import compare_slowdowns


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("bench"), repetitions=1, small=True, scale_days=3)


def test_scripts_give_equal_slowdowns(setting: Setting) -> None:
    for name in SCRIPTS:
        run_script(name, setting)
    rows, differing = compare_slowdowns(answer(SKETCH, setting), answer(PANDAS, setting))
    assert rows > 1_000
    assert differing == 0


@pytest.mark.soak
def test_commands_and_their_bounds(setting: Setting) -> None:
    (section,) = PARTS["commands"](setting)
    assert len(section.bounds) == 8
    assert "| `drivetail status` |" in written(section, "now")


@pytest.mark.soak
def test_experiments_of_the_lab_and_their_bounds(setting: Setting) -> None:
    (section,) = PARTS["lab"](setting)
    assert [bound.limit for bound in section.bounds] == [120, 8, 30]
    assert len([line for line in section.lines if "lab ingest" in line or "lab build" in line]) == 4


def test_a_bound_says_whether_it_holds() -> None:
    text = written(Section("Title", ["a line"], [Bound("wall time", 2.5, 2, "x", 1.5), Bound("peak", 1, 8, "GiB")]), "begun")
    assert text == (
        "## Title\n\nbegun\n\n- wall time: **2.50x** (at most 2x, aim 1.5x): FAILS\n- peak: **1.00 GiB** (at most 8 GiB): holds\n\na line\n"
    )


@pytest.mark.skipif(not find_spec("pyspark"), reason="pyspark is not installed")
@pytest.mark.soak
def test_a_day_on_spark_is_that_of_duckdb(setting: Setting) -> None:
    for section in PARTS["spark"](setting):
        assert section.bounds[-1].value == 0
        assert "| Spark, `local[2]` |" in written(section, "now")


def test_an_event_log_gives_the_tasks_of_its_stages_heaviest_first(tmp_path: Path) -> None:
    def task(stage: int, run_ms: int, written: int) -> dict[str, object]:
        metrics = {"Executor Run Time": run_ms, "Shuffle Write Metrics": {"Shuffle Bytes Written": written}}
        return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}

    killed = {"Event": "SparkListenerTaskEnd", "Stage ID": 1}
    events = [{"Event": "SparkListenerJobStart"}, task(3, 1000, 0), killed, task(1, 2000, 10), task(1, 3000, 20)]
    (tmp_path / "log").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert read_event_log(tmp_path) == [Stage([2.0, 3.0], 30), Stage([1.0], 0)]


def test_a_measured_process_sees_the_environment_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_AFTER_IMPORT", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import os; assert os.environ['SET_AFTER_IMPORT'] == '1' and 'PYTHONDONTWRITEBYTECODE' not in os.environ"
    assert measure(sys.executable, "-c", code).seconds > 0
