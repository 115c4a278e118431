"""The bench runs on small fleets, and its yardsticks agree with each other."""

from importlib.util import find_spec

import pytest

from workbench.bench import PARTS, TITLES, written
from workbench.parts import Bound, Section, Setting
from workbench.parts.day import TEXT, answer, run_script
from workbench.parts.questions import cookbook
from workbench.yardsticks import SCRIPTS
from workbench.yardsticks.compare import compare_slowdowns


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    return Setting(tmp_path_factory.mktemp("bench"), repetitions=1, small=True, scale_days=3)


def test_scripts_give_equal_slowdowns(setting: Setting) -> None:
    names = [name for name in SCRIPTS if "Spark" not in name]
    for name in names:
        run_script(name, setting)
    for name in names[1:]:
        rows, differing = compare_slowdowns(answer(TEXT, setting), answer(name, setting))
        assert rows > 1_000
        assert differing == 0, name


@pytest.mark.skipif(not find_spec("pyspark"), reason="pyspark is not installed")
@pytest.mark.soak
def test_spark_gives_equal_slowdowns(setting: Setting) -> None:
    run_script("Spark local", setting)
    run_script(TEXT, setting)
    assert compare_slowdowns(answer(TEXT, setting), answer("Spark local", setting))[1] == 0


@pytest.mark.soak
def test_commands_and_their_bounds(setting: Setting) -> None:
    (section,) = PARTS["commands"](setting)
    assert section.title in TITLES
    assert len(section.bounds) == 5
    assert "| `drivetail status` |" in written(section, "now")


def test_a_bound_says_whether_it_holds() -> None:
    text = written(Section("Title", ["a line"], [Bound("wall time", 2.5, 2, "x", 1.5), Bound("peak", 1, 8, "GiB")]), "begun")
    assert text == (
        "## Title\n\nbegun\n\n- wall time: **2.50x** (at most 2x, aim 1.5x): FAILS\n- peak: **1.00 GiB** (at most 8 GiB): holds\n\na line\n"
    )


def test_the_cookbook_has_its_questions() -> None:
    questions = cookbook()
    assert len(questions) >= 20
    assert all(sql.lstrip().startswith(("select", "with")) for sql in questions.values())
