"""When the data of a week are complete: write its report, `WAREHOUSE/reports/WEEK.html`.

A week is complete once the publication reaches its Sunday 23:00 UTC. `drivetail_hourly` says so through the asset
`drivetail_complete_weeks`; no clock does, so a late fleet gets its report late and right. Drive-hours that come later for a week
that already has a report make it due again: the report is replaced.
By hand: `drivetail report --due`, or trigger this DAG, with a week if it is to be one of your choice.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, Param, dag, task

import drivetail_shared as shared

COMPLETE_WEEKS = Asset("drivetail_complete_weeks", uri="drivetail://marts/complete-weeks")


@dag(
    schedule=[COMPLETE_WEEKS],
    catchup=False,
    max_active_runs=1,
    description="When a week's data are complete: write its report.",
    doc_md=__doc__,
    tags=["drivetail", "fleet", "weekly"],
    default_args=shared.defaults(),
    params={
        "week": Param(
            None, type=["null", "string"], pattern=r"^\d{4}-W\d{2}(?!\n)$", description="ISO week, like 2026-W46; those due where empty."
        )
    },
    dagrun_timeout=timedelta(hours=6),
    on_failure_callback=shared.notify_timeout,
    on_success_callback=shared.notify_well,
)
def drivetail_weekly_report() -> None:
    @task(doc_md="The weeks of the events that started this run, while they are due; started by hand, the week given or those due.")
    def weeks(params: Any = None, triggering_asset_events: Any = None) -> list[str]:
        from report import due_weeks

        if params["week"]:
            return [params["week"]]
        named = {week for event in triggering_asset_events[COMPLETE_WEEKS] for week in event.extra.get("weeks", [])}
        # two hourly runs name a week where the second ends before its report is written
        return [week for week in due_weeks(shared.warehouse()) if week in named or not named]

    @task(map_index_template="{{ week }}", max_active_tis_per_dag=1, doc_md="Selects from the marts and draws.")
    def write(week: str) -> str:
        from airflow.sdk import get_current_context

        from report import write_report

        get_current_context()["week"] = week  # type: ignore[typeddict-unknown-key]
        with shared.no_retry():
            return str(write_report(shared.warehouse(), week=week))

    write.expand(week=weeks())


drivetail_weekly_report()
