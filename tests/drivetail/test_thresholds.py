"""Thresholds of a warehouse, views and custom models change without a day being computed again; a stored model changes every day."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from drivetail.service.settings import SettingsError, load_settings
from engine.dbt import Project, store_version
from engine.thresholds import ThresholdError, checked, own_thresholds, variables
from engine.warehouse import PROJECT, Warehouse
from tests.drivetail.conftest import drivetail

ALERTS = "select subject_id from marts.fct_slow_alerts where subject_type = 'drive' and reason = 'acute' order by all"


def built(warehouse: Warehouse) -> None:
    done = drivetail("build", "-w", warehouse.root)
    assert done.exit_code == 0, done.output


def asked(warehouse: Warehouse, query: str) -> list[Any]:
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        return connection.execute(query).fetchall()


def stored(warehouse: Warehouse) -> dict[Path, tuple[int, int]]:
    """Every file of the store, with its inode and when it was written."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in warehouse.store.rglob("*.parquet")}


def live(warehouse: Warehouse) -> set[str]:
    with duckdb.connect(str(warehouse.build_database)) as connection:
        return {file for (file,) in connection.execute("select file from plan.files").fetchall()}


@pytest.fixture
def project(copied: Warehouse) -> Any:
    """The manifest that builds in this process use."""
    return Project.parsed("duckdb", copied.build / "dbt", copied.build / "logs")


def test_thresholds_views_and_custom_models_change_and_compute_no_day(
    settled: Warehouse, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Warehouse(tmp_path / "other")
    shutil.copytree(settled.root, other.root)
    before, published = stored(settled), asked(settled, "select publication_id from marts.publication")
    assert before and asked(settled, ALERTS) == [("d15",), ("v1",)], "slow for 3 and for 18 hours"

    settled.settings.write_text("[thresholds]\nalert_slow_hours = 4\nlagging_hours = 3\n")
    for warehouse in (settled, other):
        built(warehouse)
    assert asked(settled, ALERTS) == [("v1",)]
    assert asked(other, ALERTS) == [("d15",), ("v1",)], "one process, two warehouses"
    assert stored(settled) == before
    assert asked(settled, "select publication_id from marts.publication") != published
    assert "RAID groups more than 3 h behind" in drivetail("status", "-w", settled.root).output
    assert "drivetail build" not in drivetail("alerts", "-w", settled.root).output, "it is of these models"
    again = asked(settled, "select publication_id from marts.publication")
    built(settled)
    assert asked(settled, "select publication_id from marts.publication") == again, "nothing has changed"

    settled.settings.unlink()
    view = project.nodes["model.drivetail.fct_raid_group_freshness"]
    monkeypatch.setattr(view, "raw_code", f"select * from ({view.raw_code}) where false")
    monkeypatch.setattr("engine.dbt.models_version", lambda: "of a changed view")
    monkeypatch.setattr("engine.read.models_version", lambda: "of a changed view")
    monkeypatch.setenv("DRIVETAIL_CUSTOM_MODELS", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "slow.sql").write_text("select drive_id from {{ ref('fct_drive_slowness') }} where slow_hours > 0")
    built(settled)
    assert asked(settled, ALERTS) == [("d15",), ("v1",)]
    assert asked(other, "select count(*) > 0 from marts.fct_raid_group_freshness") == [(True,)]
    assert asked(settled, "select count(*) from marts.fct_raid_group_freshness") == [(0,)]
    assert asked(settled, "from custom.slow order by all") == [("d15",), ("v1",)]
    assert stored(settled) == before


def test_a_changed_stored_model_computes_every_day(copied: Warehouse, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = live(copied)
    model = project.nodes["model.drivetail.int_raid_hours"]
    monkeypatch.setattr(model, "raw_code", f"-- changed\n{model.raw_code}")
    built(copied)
    assert before and not before & live(copied)


def test_what_decides_whether_days_are_computed(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    version = store_version(project)

    def changes(thing: Any, attribute: str) -> bool:
        with monkeypatch.context() as patched:
            patched.setattr(thing, attribute, getattr(thing, attribute) + " ")
            return store_version(project) != version

    nodes, macros = project.nodes, project.macros
    assert changes(nodes["model.drivetail.stg_raw__drive_hours"], "raw_code"), "a stored model is made of it"
    assert changes(nodes["model.drivetail.plan_days__changed"], "raw_code"), "it says which days are computed"
    assert changes(macros["macro.drivetail.duckdb__median_of_group"], "macro_sql")
    assert changes(macros["macro.drivetail.materialization_by_day_duckdb"], "macro_sql")
    assert not changes(nodes["model.drivetail.fct_slow_alerts"], "raw_code")
    assert not changes(nodes["model.drivetail.int_drives__totals"], "raw_code")
    assert not changes(macros["macro.drivetail.raised_together"], "macro_sql")
    assert not changes(nodes["model.drivetail.int_raid_hours"], "description")
    monkeypatch.setitem(variables(), "alert_slow_hours", 99)
    assert store_version(project) == version
    monkeypatch.setitem(variables(), "slow_threshold", 99.0)
    assert store_version(project) != version


def test_no_stored_model_uses_what_can_be_set(project: Any) -> None:
    from engine.dbt import _made_of

    made = _made_of(project)
    texts = [project.nodes[each].raw_code for each in made if each in project.nodes]
    texts += [project.macros[each].macro_sql for each in made if each in project.macros]
    texts += [str(project.nodes[each].config.to_dict()) for each in made if each in project.nodes]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    settable = variables()["settable"]
    assert not words & settable.keys()
    assert not [name for name in settable if name.endswith("_threshold")], "names that models put together"
    assert {name: variables()[name] for name in settable} == checked({name: variables()[name] for name in settable})


def test_the_page_lists_what_can_be_set() -> None:
    page = (PROJECT / "docs" / "thresholds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) to ([\d.]+) \|", page, re.MULTILINE)
    listed = {name: (float(default), [float(least), float(greatest)]) for name, default, least, greatest in rows}
    assert listed == {name: (float(variables()[name]), bounds) for name, bounds in variables()["settable"].items()}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[thresholds]\nalert_slow_hour = 4", "thresholds.alert_slow_hour: unknown key; see docs/thresholds.md"),
        ("[thresholds]\nslow_threshold = 3.0", "thresholds.slow_threshold: cannot be set here, because stored days are computed with it"),
        ("[thresholds]\nalert_slow_hours = 0", "thresholds.alert_slow_hours is 0; give a whole number from 1 to 672"),
        ("[thresholds]\nalert_slow_hours = 2.5", "thresholds.alert_slow_hours is 2.5; give a whole number from 1 to 672"),
        ("[thresholds]\nslo_slow_budget = true", "thresholds.slo_slow_budget is True; give a number from 0.0 to 1.0"),
        ("[thresholds]\nslo_slow_budget = nan", "thresholds.slo_slow_budget is nan; give a number from 0.0 to 1.0"),
        ("thresholds = 3", "thresholds: write a section, [thresholds]"),
        ("[thresholds", "drivetail.toml: "),
    ],
)
def test_a_threshold_that_cannot_be_used_is_one_line(tmp_path: Path, given: str, said: str) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.settings.write_text(given)
    with pytest.raises(ThresholdError) as refused:
        own_thresholds(warehouse)
    with pytest.raises(SettingsError) as error:
        load_settings(warehouse)
    for message in (str(refused.value), str(error.value)):
        assert message.startswith(str(warehouse.settings)) and said in message and "\n" not in message


def test_a_build_with_a_wrong_threshold_is_refused_and_keeps_the_publication(copied: Warehouse) -> None:
    copied.settings.write_text("[thresholds]\nalert_slow_hour = 4\n")
    before = copied.published.read_bytes()
    refused = drivetail("build", "-w", copied.root)
    assert refused.exit_code == 2 and "thresholds.alert_slow_hour: unknown key" in refused.stderr
    assert copied.published.read_bytes() == before
