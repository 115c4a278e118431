"""Faults made from compiled SQL: each kind is planted in the model's own nodes, and a unit test that looks there finds it."""

import duckdb
import yaml

from workbench.mutants import EQUIVALENT, Compiled, Outcome, faults, is_equivalent, judge, model_rows, page, survivor_rows

SQL = """
with dbt_internal_unit_test_actual as (
    select "drive_id", "hours", 'actual' as "actual_or_expected" from (
        with fixture__slow as (select 'd1' as drive_id, 2.0 as slowdown union all select 'd1', 1.9 union all select 'd2', 1.0),
        marked as (select drive_id, coalesce(slowdown, 0) >= {threshold} as is_slow from fixture__slow)
        select drive_id, sum(case when is_slow then 1 else 0 end) as hours from marked where drive_id is not null group by drive_id
    ) _dbt_internal_unit_test_actual
),
dbt_internal_unit_test_expected as (
    select "drive_id", "hours", 'expected' as "actual_or_expected"
    from (select 'd1' as drive_id, {hours} as hours union all select 'd2', 0) _dbt_internal_unit_test_expected
)
select * from dbt_internal_unit_test_actual union all select * from dbt_internal_unit_test_expected
"""


def verdicts(*tests: str) -> dict[str, str]:
    compiled = [Compiled(test) for test in tests]
    with duckdb.connect() as connection:
        return {f"{fault.kind} in {fault}": judge(connection, fault, compiled) for fault in faults("slow", compiled)}


def test_faults_are_planted_outside_fixtures_and_killed_or_survive() -> None:
    found = verdicts(SQL.format(threshold="2.0", hours=1))
    boundary = "boundary in marked: COALESCE(slowdown, 0) >= 2.0 → COALESCE(slowdown, 0) > 2.0"
    assert found[boundary] == "killed"
    assert found["coalesce in marked: COALESCE(slowdown, 0) → slowdown"] == "survived"
    assert {each.split(" in ")[0] for each in found} == {"boundary", "coalesce", "literal", "aggregate", "case", "dropped term", "negation"}
    assert not any("UNION" in each for each in found)


def test_a_test_with_another_threshold_finds_the_same_fault() -> None:
    blind, sharp = SQL.format(threshold="1.5", hours=2), SQL.format(threshold="1.9", hours=2)
    of_blind = {each: verdict for each, verdict in verdicts(blind).items() if each.startswith("boundary")}
    of_both = {each: verdict for each, verdict in verdicts(blind, sharp).items() if each.startswith("boundary")}
    assert list(of_blind.values()) == ["survived"]
    assert list(of_both.values()) == ["killed"]


def test_the_page_says_how_many_faults_there_are_and_which_survived() -> None:
    found, survivor = faults("slow", [Compiled(SQL.format(threshold=2, hours=1))])[:2]
    outcomes = [Outcome("slow", 9, [(found, "killed"), (survivor, "survived")], 1.0), Outcome("fast", 1, [(found, "equivalent")], 1.0)]
    written = page(outcomes, 2, 1, ["bare"])
    assert "| in the 2 models with unit tests | 10 |" in written
    assert "| tried: at most 2 of each model, drawn with seed 1 | 3 |" in written
    assert model_rows(outcomes, ["bare"])[1:] == [["slow", 9, 2, 1, 0, 0, 1], ["fast", 1, 1, 0, 1, 0, 0], ["bare"] + [""] * 6]
    assert survivor_rows(outcomes)[1:] == [["slow", survivor.kind, str(survivor)]]


def test_equivalent_faults_have_a_reason() -> None:
    known = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8"))
    assert all(reason and listed for reason, listed in known.items())
    (fault,) = [each for each in faults("slow", [Compiled(SQL.format(threshold=2, hours=1))]) if each.kind == "coalesce"]
    assert is_equivalent(fault, {"why": [{"s*": "marked: COALESCE* → slowdown"}]})
    assert not is_equivalent(fault, {"why": [{"t*": "marked: COALESCE* → slowdown"}, {"s*": "marked: COALESCE* → 0"}]})
    assert not is_equivalent(fault, known)
