"""An analyst's own models are built and published, and an error in one of them stops nothing."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from engine.build import build
from engine.publish import current_publication
from engine.warehouse import PROJECT, Warehouse
from tests.drivetail.conftest import HEADER, built, drivetail, row, write_bundle
from tests.proof.support import asked, command, environment, refusing

README = (PROJECT / "models/custom/README.md").read_text(encoding="utf-8")
GOOD = "select drive_id, slow_hours from {{ ref('fct_drive_slowness') }}"
TESTED = "models: [{name: slow, columns: [{name: drive_id, data_tests: [unique, not_null]}]}]"


@pytest.fixture
def custom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of custom models."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("DRIVETAIL_CUSTOM_MODELS", str(folder))
    return folder


def problems(warehouse: Warehouse) -> list[str]:
    found: list[str] = json.loads(drivetail("status", "--json", "--warehouse", warehouse.root).output)["problems"]
    return found


def count(warehouse: Warehouse, relation: str) -> str:
    return drivetail("sql", f"select count(*) as n from {relation}", "--warehouse", warehouse.root, "--format", "csv").output


def test_custom_models_are_published_and_their_errors_are_reported(settled: Warehouse, custom: Path) -> None:
    for name, text in re.findall(r"^`models/custom/(\S+)`.*?```\w+\n(.*?)```", README, re.DOTALL | re.MULTILINE):
        (custom / name).write_text(text)
    (custom / "slow.sql").write_text(GOOD)
    (custom / "slow.yml").write_text(TESTED)
    (custom / "kept.sql").write_text("{{ config(materialized='table') }} select * from {{ ref('slow') }}")
    (custom / "bad.sql").write_text("select no_such_column from {{ ref('dim_drives') }}")
    (custom / "after_bad.sql").write_text("select * from {{ ref('bad') }}")
    (custom / "doubled.sql").write_text("select 1 as x union all select 1")
    (custom / "doubled.yml").write_text("models: [{name: doubled, columns: [{name: x, data_tests: [unique]}]}]")
    (custom / "two.sql").write_text("select 1 as x; drop schema intermediate cascade")
    (custom / "pragma.sql").write_text("-- the first line\npragma database_size")
    (custom / "hooked.sql").write_text("{{ config(post_hook='drop table marts.dim_drives') }} select 1 as x")
    (custom / "own.sql").write_text("{{ config(meta={'parts_by': 'x'}) }} select 1 as x")
    (custom / "namesake.sql").write_text("{{ config(materialized='table', alias='dim_drives') }} select 1 as x")
    (custom / "remarked.sql").write_text("{{ config(materialized='table') }} select 1 as x -- it's all")
    (custom / "remarked.yml").write_text("models: [{name: remarked, columns: [{name: x, data_tests: [unique]}]}]")
    (custom / "remarked_too.sql").write_text("select '--' as x from {{ ref('remarked') }} /* a */ -- b /* c")
    (custom / "open.sql").write_text("select 1 as x /* it's all")
    (custom / "open_too.sql").write_text("{{ config(materialized='table') }} select 1 as x -- a\n/* b */ /* -- c")
    (custom.parent / "outside.csv").write_text("x\n1\n2\n")
    (custom / "outside.sql").write_text(f"{{{{ config(materialized='table') }}}} select * from read_csv('{custom.parent}/outside.csv')")
    # a custom model can write nowhere, and reads what is published
    (custom / "in_python.py").write_text("def model(dbt, session):\n    return session.sql('select 1 as x')\n")
    (custom / "unpublished.sql").write_text("select * from {{ ref('int_drive_days__outcomes') }}")
    before = asked(settled.published, "select count(*) from duckdb_tables() where schema_name = 'custom'")
    said = built(settled)
    marts = count(settled, "marts.fct_drive_slowness")
    assert count(settled, "custom.outside").split() == ["n", "2"]
    (question,) = re.findall(r"^drivetail (sql .*)$", README, re.MULTILINE)
    assert drivetail(*shlex.split(question), "--warehouse", settled.root).exit_code == 0
    assert count(settled, "custom.dim_drives").split() == ["n", "1"] != count(settled, "marts.dim_drives").split()
    assert count(settled, "custom.slow") == count(settled, "custom.kept") == marts
    assert count(settled, "custom.doubled").split() == ["n", "2"]
    assert count(settled, "custom.remarked").split() == count(settled, "custom.remarked_too").split() == ["n", "1"]
    for name in ("open", "open_too"):
        assert re.search(rf"{custom}/{name}\.sql: custom model {name} is not published: .*unterminated /\* comment", said), said
    assert f"{custom}/bad.sql: custom model bad is not published" in said and "no_such_column" in said
    assert f"{custom}/after_bad.sql: custom model after_bad is not published: skipped" in said
    assert f"{custom}/two.sql: custom model two is not published: a model is one select; this is select, drop" in said
    assert f"{custom}/pragma.sql: custom model pragma is not published: a model is one select; this is pragma" in said
    assert f"{custom}/hooked.sql: custom model hooked is not published: hooks: of the project's own models" in said
    assert f"{custom}/in_python.py: custom model in_python is not published: a model is one select; this is Python" in said
    assert f"{custom}/unpublished.sql: custom model unpublished is not published: it reads intermediate.int_drive_days__outcomes" in said
    refused = "select count(*) from duckdb_tables() where schema_name = 'custom' and table_name in ('in_python', 'unpublished')"
    assert asked(settled.published, refused) == before == [(0,)]
    assert f"{custom}/own.sql: custom model own is not published: parts_by: of the project's own models" in said
    assert f"{custom}/doubled.yml: test unique_doubled_x failed" in said
    assert "correct or remove it, then run `drivetail build`" in said
    assert sum(str(custom) in problem for problem in problems(settled)) == 11
    assert "custom model bad is not published" in built(settled)  # nothing is new, the error is still there

    (custom / "wrong.sql").write_text("select {{ from")
    said = built(settled)
    assert f"{custom}/wrong.sql" in said and "no custom model is published" in said
    assert count(settled, "marts.fct_drive_slowness") == marts
    assert "custom.slow" not in count(settled, "custom.slow") or "does not exist" in count(settled, "custom.slow")

    wrong = ("two", "pragma", "hooked", "own", "bad", "after_bad", "doubled", "wrong", "open", "open_too", "unpublished")
    for name in [*(f"{name}.sql" for name in wrong), "doubled.yml", "in_python.py"]:
        (custom / name).unlink()
    built(settled)
    assert count(settled, "custom.slow") == marts
    assert not [problem for problem in problems(settled) if str(custom) in problem]

    # what was compiled is kept: dbt is not needed until one of them changes
    path = os.pathsep.join([str(refusing(["dbt"], custom.parent / "no-dbt")), environment()["PYTHONPATH"]])
    daily = command("build", "--daily", "--warehouse", settled.root)
    again = subprocess.run(daily, env={**environment(), "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and not again.stderr, again.stderr
    assert count(settled, "custom.slow") == count(settled, "custom.kept") == marts


def test_git_ignores_the_folder_of_custom_models() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", "models/custom/slow_ssds.sql", "models/custom/README.md"], cwd=PROJECT, capture_output=True
    )
    assert ignored.stdout.decode().split() == ["models/custom/slow_ssds.sql"]


def test_a_reference_to_a_missing_model_stops_only_custom_models(settled: Warehouse, custom: Path) -> None:
    (custom / "lost.sql").write_text("select * from {{ ref('no_such_model') }}")
    said = built(settled)
    assert f"{custom}/lost.sql" in said and "no_such_model" in said
    assert count(settled, "marts.dim_drives")


@pytest.mark.usefixtures("worker")
def test_a_model_beyond_its_limits_stops_no_other(settled: Warehouse, custom: Path) -> None:
    settled.settings.write_text('[custom]\nseconds = 2\nmemory = "100MB"\n')
    crossed = "from range(10000000) as a (x), range(10000000) as b (y) where x <> y"
    table = "{{ config(materialized='table') }}"
    (custom / "endless.sql").write_text(f"{table} select count(*) as n {crossed}")
    (custom / "large.sql").write_text(f"{table} select list(x order by hash(x)) as n from range(100000000) as a (x)")
    (custom / "tested.sql").write_text(f"select * {crossed}")
    (custom / "tested.yml").write_text("models: [{name: tested, columns: [{name: x, data_tests: [unique]}]}]")
    # each level takes DuckDB's parser twice as long, and no interrupt reaches it; the sibling is of joins
    (custom / "nested.sql").write_text("(with a as (" * 40)
    (custom / "joined.sql").write_text("select 1 as x from " + "(" * 3000 + "range(1) as a" + " join range(1) as b on true)" * 3000)
    (custom / "well.sql").write_text("select 1 as x")
    said = built(settled)
    assert f"{custom}/endless.sql: custom model endless is not published: it takes longer than 2 s" in said
    assert f"{custom}/large.sql: custom model large is not published" in said
    assert f"{custom}/nested.sql: custom model nested is not published" in said
    assert f"{custom}/joined.sql: custom model joined is not published" in said
    assert f"{custom}/tested.yml: test unique_tested_x failed: it takes longer than 2 s" in said
    assert count(settled, "marts.dim_drives").startswith("n") and count(settled, "custom.well").split() == ["n", "1"]
    settled.settings.write_text('[custom]\nseconds = "long"\n')
    (custom / "well.sql").write_text("select 2 as x")
    assert "custom: give seconds and memory" in built(settled)


def test_marts_are_published_before_custom_models_are_made(settled: Warehouse, custom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when an analyst's query ends the process; until they are made again, those of the last build are shown."""
    (custom / "counted.sql").write_text("{{ config(materialized='table') }} select count(*) as n from {{ ref('fct_drive_hours') }}")
    assert drivetail("build", "--no-daily", "-w", settled.root).exit_code == 0
    assert drivetail("sql", "from custom.counted", "-w", settled.root).exit_code == 1
    assert "published" in built(settled) and "Nothing is new" in built(settled)
    before = count(settled, "custom.counted")
    marts = current_publication(settled)

    bundle = write_bundle(custom.parent / "third", {"drive_hours.csv": f"{HEADER}\n{row(30, 'd11', 'g1', us='100,100')}\n"})
    assert drivetail("ingest", "bundle", bundle, "-w", settled.root).exit_code == 0
    with monkeypatch.context() as patched:
        patched.setattr("engine.build.build_custom", killed)
        with pytest.raises(KeyboardInterrupt):
            build(settled)
    now = current_publication(settled)
    assert marts is not None and now is not None and now.publication_id > marts.publication_id
    hours = "select count(*) = (select n from custom.counted) as n from marts.fct_drive_hours"
    assert count(settled, "custom.counted") == before and asked(settled.published, hours) == [(False,)]
    assert "Nothing is new" not in built(settled)
    assert asked(settled.published, hours) == [(True,)]


def killed(*arguments: object) -> None:
    raise KeyboardInterrupt
