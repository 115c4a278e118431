"""Every hour: land what has arrived in the inboxes and what servers have, build, publish, and report what needs an operator.

| step | does | by hand |
|---|---|---|
| `sources.wait_for_uploads` | waits until `wait_minutes` after the hour; passes at once for an hour of the past | |
| `sources.discover` | lists servers and what has arrived: of this hour or before, or without an hour in its name | `drivetail inbox` |
| `raw.land` | pulls servers, ingests entries through the gate; red if one is held, unreadable or unanswered | `drivetail inbox --land` |
| `marts.build` | runs the models over what is new, tests, publishes what is needed within the hour | `drivetail build --no-daily` |
| `marts.each_day` | when a day is over, makes what looks at weeks and publishes again | `drivetail build` |
| `marts.complete_weeks` | names the weekly reports that are due; `drivetail_weekly_report` runs on it | `drivetail report --due` |
| `watch.new_alerts` | notifies of each drive, host or RAID group that became slow or silent, once | `drivetail alerts --notify` |
| `watch.hosts` | writes the hosts of open alerts into the file of `[collect]`, if there is one | `drivetail alerts --hosts` |
| `watch.freshness` | fails when no newer hour has been published for `fresh_hours` | `drivetail status --check` |
| `watch.metrics` | writes the metrics into the file of `[metrics]`, if there is one | `drivetail metrics --out` |
| `watch.all_went_well` | fails when any step failed, so that the run is red | |

Settings: `WAREHOUSE/drivetail.toml`. Any step may be killed and repeated at any instant. Missed hours are caught up, a run each. To run a
range again: docs/airflow.md. When a task is red: docs/runbooks/red-task.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias, CronDataIntervalTimetable, TriggerRule, dag, task, task_group
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, DownstreamTasksSkipped

import drivetail_shared as shared
from drivetail.service.settings import this_hour

COMPLETE_WEEKS = Asset("drivetail_complete_weeks", uri="drivetail://marts/complete-weeks")
"""Weeks whose reports are due: an event names them, `{"weeks": ["2026-W03"]}`."""

PUBLICATION = Asset("drivetail_publication", uri="drivetail://marts/publication")
"""New numbers: an event for each publication, `{"publication": "000017"}`. DAGs of others may run on it."""

PUBLISHED = AssetAlias("drivetail_published")
"""Outlet of a build: PUBLICATION where it publishes, else nothing."""

PARTS = 4
"""Most landing tasks of one run: each loads Great Expectations for some seconds, and only one writes at a time."""

schedule = shared.parsed_settings().schedule


def until(data_interval_end: Any) -> datetime:
    """End of the hour that a run is of, UTC without zone: of the last full one where it was started by hand, and has no interval."""
    if data_interval_end is None:
        return this_hour()
    return datetime.fromtimestamp(data_interval_end.timestamp(), UTC).replace(tzinfo=None)


@dag(
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=schedule.start.replace(tzinfo=UTC),
    # the last hour to run is the one that begins then
    end_date=schedule.end and schedule.end.replace(tzinfo=UTC),
    catchup=True,
    max_active_runs=1,
    description="Each hour: land what has come, build, publish, and say what needs an operator.",
    doc_md=__doc__,
    tags=["drivetail", "fleet", "hourly"],
    default_args=shared.defaults(),
    dagrun_timeout=shared.RUN_LIMIT,
    on_failure_callback=shared.notify_timeout,
    on_success_callback=shared.notify_well,
)
def drivetail_hourly() -> None:
    @task_group(tooltip="What has arrived for this hour and those before")
    def sources() -> Any:
        @task.sensor(mode="reschedule", poke_interval=30, timeout=6 * 3600, doc_md="An hour's uploads may take some minutes.")
        def wait_for_uploads(data_interval_end: Any = None) -> bool:
            # a run started by hand has no interval: it is for now
            wait = timedelta(minutes=shared.settings().schedule.wait_minutes if data_interval_end is not None else 0)
            return datetime.now(UTC).replace(tzinfo=None) >= until(data_interval_end) + wait

        @task(doc_md="Names, sizes and times only; nothing is read. An hour of the past that has nothing new ends here.")
        def discover(data_interval_end: Any = None) -> list[list[dict[str, str]]]:
            from airflow.sdk import get_current_context

            from drivetail.feeds.entries import arrived, partition
            from drivetail.feeds.pulls import due
            from engine.build import built

            warehouse, settings, end = shared.warehouse(), shared.settings(), until(data_interval_end)
            # a run by hand takes all that is there, as `drivetail inbox --land` does
            entries = arrived(warehouse, settings, until=None if data_interval_end is None else end)
            # each server in a task of its own: when it does not answer, only that fails
            parts: list[list[Any]] = [*partition(entries, PARTS), *([pull] for pull in due(warehouse, settings, end))]
            # the run of now looks after what needs an operator, also where nothing comes
            if not parts and end < this_hour() and built(warehouse):
                print("nothing is new")
                raise DownstreamTasksSkipped(tasks=sorted(get_current_context()["task"].get_flat_relative_ids(upstream=False)))
            return [[{"inbox": each.inbox, "path": each.path} for each in part] for part in parts]

        found = discover()
        wait_for_uploads() >> found
        return found

    @task_group(tooltip="Deliveries that passed the gate, as they came")
    def raw(found: Any) -> Any:
        @task(pool=shared.WRITER, map_index_template="{{ entries }}", doc_md="Gate and land, one delivery after the other.")
        def land(part: list[dict[str, str]]) -> None:
            from airflow.sdk import get_current_context

            from drivetail.feeds.inbox import land_each

            get_current_context()["entries"] = shared.label([each["path"] for each in part])  # type: ignore[typeddict-unknown-key]
            troubled = []
            for outcome in land_each(shared.warehouse(), shared.settings(), [(each["inbox"], each["path"]) for each in part]):
                print(outcome.sentence)
                if outcome.needs_somebody:
                    troubled.append(outcome)
            messages = "; ".join(outcome.message for outcome in troubled)
            # a retry lands what a full disk or an error of the disk left
            if any(outcome.is_retryable for outcome in troubled):
                raise AirflowException(messages)
            # a retry would end the same
            if troubled and all(outcome.is_kept for outcome in troubled):
                raise shared.OneDelivery(messages)
            # the next hour's run asks a server again, and lists the inbox
            if troubled:
                raise AirflowFailException(messages)

        return land.expand(part=found)

    @task_group(tooltip="Slowdowns, tails, intervals, published for readers")
    def marts() -> tuple[Any, Any]:
        def publication(daily: bool | None, outlet_events: Any) -> str:
            """The one that a build makes, or the last where all is built; daily: as of `engine.build.build`."""
            from engine.build import build as run_build
            from engine.build import built

            with shared.no_retry():
                last = built(shared.warehouse())
                if last is not None:
                    return last.publication_id
                made = run_build(shared.warehouse(), daily=daily)
            if made.is_new:
                outlet_events[PUBLISHED].add(PUBLICATION, extra={"publication": made.publication.publication_id})
            return made.publication.publication_id

        # publish what landed, even if another entry did not land
        @task(
            pool=shared.WRITER,
            trigger_rule=TriggerRule.ALL_DONE,
            outlets=[PUBLISHED],
            doc_md="The models over what is new, their tests, one publication; nothing where all is built.",
        )
        def build(outlet_events: Any = None) -> str:
            return publication(False, outlet_events)

        @task(pool=shared.WRITER, outlets=[PUBLISHED], doc_md="What looks at weeks, one more publication; nothing where no day is over.")
        def each_day(outlet_events: Any = None) -> str:
            return publication(None, outlet_events)

        @task(
            outlets=[COMPLETE_WEEKS],
            doc_md="Skipped unless the data of a week have become complete, or a reported week got more data.",
        )
        def complete_weeks(outlet_events: Any = None) -> list[str]:
            from report import due_weeks

            weeks = due_weeks(shared.warehouse())
            if not weeks:
                raise AirflowSkipException("no weekly report is due")
            outlet_events[COMPLETE_WEEKS].extra = {"weeks": weeks}
            return weeks

        built, daily = build(), each_day()
        built >> daily >> complete_weeks()
        return built, daily

    @task_group(tooltip="What needs an operator", default_args={"execution_timeout": shared.WATCH_LIMIT})
    def watch(landed: Any, built: Any, daily: Any) -> None:
        @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Red while no newer hour is published for too long.")
        def freshness(data_interval_end: Any = None) -> None:
            from drivetail.tell.watch import staleness

            message = staleness(shared.warehouse(), shared.settings(), until(data_interval_end))
            if message:
                raise AirflowFailException(message)

        @task(trigger_rule=TriggerRule.NONE_FAILED, doc_md="Red when a step before is.")
        def all_went_well() -> None:
            """Does nothing; its colour is the run's."""

        @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Red when a receiver did not take them; a retry sends it those, and no other.")
        def new_alerts() -> int:
            from drivetail.tell.alerts import new_alerts as new_ones
            from drivetail.tell.notify import notify_new_alerts
            from drivetail.tell.watch import slow_drives

            warehouse, receivers = shared.warehouse(), shared.settings().notify
            if not warehouse.published.exists():  # the first build may have failed
                return 0
            if not receivers:  # the log has them
                return len(new_ones(warehouse, lambda alerts: print(slow_drives(alerts))))
            deliveries = notify_new_alerts(warehouse, receivers)
            failures = [each.failure for each in deliveries if each.failure is not None]
            if failures:
                raise AirflowException("; ".join(failures))
            return sum(each.alert_count + each.silent_count for each in deliveries)

        @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Skipped unless `[collect]` names a file.")
        def hosts() -> list[str]:
            from drivetail.tell.slow_hosts import write_slow_hosts

            warehouse, collect = shared.warehouse(), shared.settings().collect
            if collect.file is None or not warehouse.published.exists():
                raise AirflowSkipException("drivetail.toml names no file for hosts, or nothing is published yet")
            with shared.no_retry():
                return sorted(write_slow_hosts(warehouse, collect, collect.file).hosts)

        @task(trigger_rule=TriggerRule.ALL_DONE, doc_md="Skipped unless `[metrics]` names a file.")
        def metrics() -> str:
            from drivetail.tell.metrics import write_metrics

            file = shared.settings().metrics.file
            if file is None:
                raise AirflowSkipException("drivetail.toml names no file for metrics")
            with shared.no_retry():
                return str(write_metrics(shared.warehouse(), file))

        watched = [new_alerts(), hosts(), freshness(), metrics()]
        built >> watched
        [landed, built, daily, *watched] >> all_went_well()

    found = sources()
    landed = raw(found)
    built, daily = marts()
    landed >> built
    watch(landed, built, daily)


drivetail_hourly()
