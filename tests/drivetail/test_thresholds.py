"""Thresholds of a warehouse, views and custom models change without a day being computed again; a stored model changes every day."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drivetail.service import SettingsError
from drivetail.service.settings import load_settings
from engine.compile import _store_version, compiled_manifest
from engine.compiled import models_of
from engine.nodes import PLACEHOLDER, Models
from engine.thresholds import ThresholdError, checked, own_thresholds, variables
from engine.warehouse import PROJECT, Warehouse
from tests.drivetail.conftest import built, drivetail
from tests.golden import CACHE
from tests.proof.support import asked
from workbench.unit_tests import recompiled

ALERTS = "select subject_id from marts.fct_slow_alerts where subject_type = 'drive' and reason = 'acute' order by all"


def stored(warehouse: Warehouse) -> dict[Path, tuple[int, int]]:
    """Every file of the store, with its inode and when it was written."""
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in warehouse.store.rglob("*.parquet")}


def live(warehouse: Warehouse) -> set[str]:
    return {file for (file,) in asked(warehouse.build_database, "select file from plan.files")}


@pytest.fixture(scope="module")
def manifest() -> Any:
    """dbt's compilation of the project, with placeholders for thresholds; files that have not changed are not parsed again."""
    return compiled_manifest("duckdb", CACHE / "manifest")


def with_changed(models: Models, name: str, rewrite: Callable[[str], str], **versions: str) -> Models:
    """The models with other SQL of one of them."""
    nodes = [replace(node, sql=rewrite(node.sql)) if node.name == name else node for node in models]
    assert nodes != models.nodes
    return replace(models, nodes=nodes, **versions)


@pytest.mark.proof
def test_thresholds_views_and_custom_models_change_and_compute_no_day(
    settled: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Warehouse(tmp_path / "other")
    shutil.copytree(settled.root, other.root)
    before, published = stored(settled), asked(settled.published, "select publication_id from marts.publication")
    assert before and asked(settled.published, ALERTS) == [("d15",), ("v1",)], "slow for 3 and for 18 hours"

    settled.settings.write_text("[thresholds]\nalert_slow_hours = 4\nlagging_hours = 3\n")
    for warehouse in (settled, other):
        built(warehouse)
    assert asked(settled.published, ALERTS) == [("v1",)]
    assert asked(other.published, ALERTS) == [("d15",), ("v1",)], "one process, two warehouses"
    assert stored(settled) == before
    assert asked(settled.published, "select publication_id from marts.publication") != published
    assert "RAID groups more than 3 h behind" in drivetail("status", "-w", settled.root).output
    assert "drivetail build" not in drivetail("alerts", "-w", settled.root).output, "it is of these models"
    again = asked(settled.published, "select publication_id from marts.publication")
    built(settled)
    assert asked(settled.published, "select publication_id from marts.publication") == again, "nothing has changed"

    settled.settings.unlink()
    changed = with_changed(
        models_of(), "fct_raid_group_freshness", lambda sql: f"select * from ({sql}) where false", version="of a changed mart"
    )
    monkeypatch.setattr("engine.projects.models_of", lambda *which: changed if len(which) < 2 else models_of(*which))
    monkeypatch.setattr("engine.read.models_version", lambda: changed.version)
    monkeypatch.setenv("DRIVETAIL_CUSTOM_MODELS", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "slow.sql").write_text("select drive_id from {{ ref('fct_drive_slowness') }} where slow_hours > 0")
    built(settled)
    assert asked(settled.published, ALERTS) == [("d15",), ("v1",)]
    assert asked(other.published, "select count(*) > 0 from status.fct_raid_group_freshness") == [(True,)]
    assert asked(settled.published, "select count(*) from status.fct_raid_group_freshness") == [(0,)]
    assert asked(settled.published, "from custom.slow order by all") == [("d15",), ("v1",)]
    assert stored(settled) == before


def test_a_changed_stored_model_computes_every_day(copied: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    before = live(copied)
    changed = with_changed(
        models_of(), "int_raid_hours", lambda sql: f"-- changed\n{sql}", version="of a changed model", store_version="of a changed model"
    )
    monkeypatch.setattr("engine.projects.models_of", lambda *which: changed if len(which) < 2 else models_of(*which))
    built(copied)
    assert before and not before & live(copied)


def test_definitions_that_decide_whether_days_are_computed(manifest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    version = _store_version(manifest)
    assert version == models_of().store_version
    nodes = {name: manifest.nodes[f"model.drivetail.{name}"] for name in (
        "stg_raw__drive_hours", "plan_days__changed", "int_raid_hours", "int_raid_hours__medians", "fct_slow_alerts", "int_drives__totals",
    )}  # fmt: skip

    def changes(thing: Any, attribute: str, value: Any) -> bool:
        with monkeypatch.context() as patched:
            patched.setattr(thing, attribute, value)
            return _store_version(manifest) != version

    def changes_sql(name: str) -> bool:
        return changes(nodes[name], "compiled_code", nodes[name].compiled_code + "\n-- changed")

    def changes_meta(name: str, **meta: Any) -> bool:
        return changes(nodes[name].config, "meta", {**nodes[name].config.meta, **meta})

    assert changes_sql("stg_raw__drive_hours"), "a stored model is made of it"
    assert changes_sql("plan_days__changed"), "it says which days are computed"
    assert changes_sql("int_raid_hours") and changes_sql("int_raid_hours__medians")
    assert not changes_sql("fct_slow_alerts") and not changes_sql("int_drives__totals")

    column = nodes["int_raid_hours"].columns["reporting_drive_count"]
    assert changes(column, "data_type", "double") and not changes(column, "description", "Said in other words.")
    assert not changes(nodes["int_raid_hours"], "description", "Said in other words.")
    assert not changes(next(iter(nodes["fct_slow_alerts"].columns.values())), "data_type", "double")
    for source in ("raw.drive_hours", "plan.files", "plan.unfinished_days"):
        column = next(iter(manifest.sources[f"source.drivetail.{source}"].columns.values()))
        assert changes(column, "data_type", "blob"), source
    assert not changes(next(iter(manifest.sources["source.drivetail.raw.labels"].columns.values())), "data_type", "blob")

    assert changes_meta("int_raid_hours__medians", made="by_day"), "its days are not there yet"
    assert changes_meta("int_raid_hours", ratios={"rio_degradation": "1.0"}), "worked out when it is read"
    assert not changes_meta("int_drives__totals", made="each_build")

    of_macro = recompiled(manifest, "model.drivetail.int_raid_hours__medians", {})
    with monkeypatch.context() as patched:
        macro = manifest.macros["macro.drivetail.duckdb__median_of_group"]
        patched.setattr(macro, "macro_sql", macro.macro_sql.replace("median(", "mode("))
        assert recompiled(manifest, "model.drivetail.int_raid_hours__medians", {}) != of_macro, "SQL holds what macros write"
    for name, other, is_stored in (("alert_slow_hours", 99, False), ("min_group_width", 99, True)):
        with monkeypatch.context() as patched:
            for unique_id, node in manifest.nodes.items():
                if node.resource_type == "model" and name in node.raw_code + str(node.depends_on.macros):
                    patched.setattr(node, "compiled_code", recompiled(manifest, unique_id, {name: other}))
            assert (_store_version(manifest) != version) is is_stored, name


def test_only_thresholds_of_slow_and_of_evidence_decide_what_is_stored() -> None:
    of_hours = ("slow_threshold_", "mild_threshold_", "min_judged_ios_", "min_load_share_")
    models, settable = models_of(), variables()["settable"]
    assert {name: variables()[name] for name in settable} == checked({name: variables()[name] for name in settable})
    for name, (least, greatest) in settable.items():
        other = least if variables()[name] == greatest else type(variables()[name])(greatest)
        is_stored = models.for_thresholds({name: other}).store_version != models.store_version
        assert is_stored is name.startswith(of_hours), name
        assert models.for_thresholds({name: variables()[name]}) is models
    used = [node.name for node in models if "slow_threshold" in node.sql and PLACEHOLDER % "slow_threshold_ssd" in node.sql]
    assert used == ["int_thresholds"]


@pytest.mark.proof
def test_thresholds_put_into_compiled_sql_give_what_dbt_compiles_with_them(manifest: Any) -> None:
    """Jinja computes nothing with a threshold: a placeholder would not be a number there."""
    settable = variables()["settable"]
    own = checked(
        {name: type(variables()[name])(bound) for name, bounds in settable.items() for bound in bounds if bound != variables()[name]}
    )
    assert all(own[name] != variables()[name] for name in own)
    put_in = models_of().with_thresholds(own)
    found = set()
    for unique_id, node in manifest.nodes.items():
        if node.resource_type in ("model", "test") and node.language == "sql" and node.compiled_code:
            found |= {name for name in settable if PLACEHOLDER % name in node.compiled_code}
            assert put_in(node.compiled_code) == recompiled(manifest, unique_id, own), unique_id
    assert found == set(settable)


def test_the_page_lists_what_can_be_set() -> None:
    page = (PROJECT / "docs" / "thresholds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) to ([\d.]+) \|", page, re.MULTILINE)
    listed = {name: (float(default), [float(least), float(greatest)]) for name, default, least, greatest in rows}
    assert listed == {name: (float(variables()[name]), bounds) for name, bounds in variables()["settable"].items()}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[thresholds]\nalert_slow_hour = 4", "thresholds.alert_slow_hour: unknown key; see docs/thresholds.md"),
        ("[thresholds]\nchronic_slowdown = 1.3", "thresholds.chronic_slowdown: cannot be set here; see docs/thresholds.md"),
        ("[thresholds]\nslow_threshold = 1.5", "thresholds.slow_threshold_disk is 1.5; give a number from 1.6 to 100.0"),
        ("[thresholds.ssd]\nslow_threshold = true", "thresholds.slow_threshold_ssd is True; give a number from 1.6 to 100.0"),
        ("[thresholds]\nssd = 3.0", "thresholds.ssd: write a section, [thresholds.ssd]"),
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


def test_a_wrong_threshold_is_refused_and_keeps_the_publication(copied: Warehouse) -> None:
    copied.settings.write_text("[thresholds]\nalert_slow_hour = 4\n")
    before = copied.published.read_bytes()
    refused = drivetail("build", "-w", copied.root)
    assert refused.exit_code == 2 and "thresholds.alert_slow_hour: unknown key" in refused.stderr
    assert copied.published.read_bytes() == before
