"""Every night: keep the warehouse sound, and prove that what is published is what was delivered.

| step | does |
|---|---|
| `expire` | removes publications that no reader can be using any more, and files only they needed |
| `proofs.sums` | the laws of the domain over everything stored |
| `proofs.raw_to_warehouse` | every accepted row of raw is stored once, with its values; stored files are as they were |
| `proofs.rebuild` | a day drawn at random, built again from raw alone, is as published |

By hand: `drivetail maintain`. When a proof is red: docs/runbooks/red-task.md.
"""

from __future__ import annotations

from datetime import UTC

from airflow.sdk import CronDataIntervalTimetable, TriggerRule, dag, task, task_group
from airflow.sdk.exceptions import AirflowFailException

import drivetail_shared as shared

schedule = shared.parsed_settings().schedule


@dag(
    # at half past: the hourly runs have the first minutes of an hour
    schedule=CronDataIntervalTimetable("30 2 * * *", timezone="UTC"),
    start_date=schedule.start.replace(tzinfo=UTC),
    end_date=schedule.end and schedule.end.replace(tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    description="Each night: remove old publications, and prove that what is published is what was delivered.",
    doc_md=__doc__,
    tags=["drivetail", "fleet", "daily"],
    default_args=shared.defaults(),
    dagrun_timeout=shared.RUN_LIMIT,
    on_failure_callback=shared.notify_timeout,
    on_success_callback=shared.notify_well,
)
def drivetail_maintenance() -> None:
    @task(pool=shared.WRITER, doc_md="Asks for DuckDB's lock on each replaced publication, without taking it.")
    def expire() -> int:
        from drivetail.service.maintenance import expire as run

        return run(shared.warehouse())

    # each proof runs, whatever the others find
    @task_group(tooltip="What is published is what was delivered", default_args={"trigger_rule": TriggerRule.ALL_DONE})
    def proofs() -> None:
        @task(pool=shared.WRITER, doc_md="tests/assert_*.sql over everything stored.")
        def sums() -> None:
            from drivetail.service.maintenance import check_sums

            with shared.no_retry():
                check_sums(shared.warehouse())

        @task(pool=shared.WRITER, doc_md="A sum over values by day, of raw and of the store; and of each stored file, then and now.")
        def raw_to_warehouse() -> None:
            from drivetail.service.maintenance import reconcile

            problems = reconcile(shared.warehouse())
            if problems:
                raise AirflowFailException("; ".join(problems))

        @task(pool=shared.WRITER, doc_md="Links to a day's deliveries, a build of its own, row by row against the publication.")
        def rebuild() -> str:
            from drivetail.service.maintenance import rebuild_check

            day, problems = rebuild_check(shared.warehouse())
            if problems:
                raise AirflowFailException("; ".join(problems))
            return str(day)

        sums() >> raw_to_warehouse() >> rebuild()

    expire() >> proofs()


drivetail_maintenance()
