"""Write the study page: this fleet beside The Tail at Store, one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file
from study.pages.page import StudyFacts, render_page
from study.words import fetch_results

LAST_COMPLETE_WEEK = "week_utc = (select week_utc from marts.dim_weeks where is_complete order by week_utc desc limit 1)"


def write_study(warehouse: Warehouse, out: Path, *, kind: str | None = None) -> Path:
    """Write the page of the current publication.

    out: HTML file; it is replaced in one step. kind: `disk` or `ssd`; by default both.
    Returns: the file.
    Raises: QueryError without a publication, or with one that holds no study.
    """
    with publication_of(warehouse) as connection:

        def of_kind(relation: str, order: str, condition: str = "true") -> list[Row]:
            query = f"select * from {relation} where ($kind is null or kind = $kind) and {condition} order by {order}"
            return fetch(connection, query, {"kind": kind})

        (publication,) = fetch(connection, "select publication_id, published_at, last_hour_utc from marts.publication")
        facts = StudyFacts(
            kind=kind,
            publication=publication,
            coverage=of_kind("study.fct_fleet_coverage", "kind"),
            results=fetch_results(connection, kind),
            variants=of_kind("study.study_variants", "variant, id, kind"),
            curves=of_kind("marts.study_curves", "figure, curve, x"),
            percentiles=of_kind("report.fct_weekly_percentiles", "kind, series, percentile", LAST_COMPLETE_WEEK),
            thresholds=fetch(connection, "select * from marts.thresholds"),
            durations=of_kind("report.fct_duration_shares", "measure, kind, hours"),
            duration_summary=of_kind("report.fct_duration_summary", "measure, kind"),
            detectors=fetch(
                connection, "select * from report.detector_agreement where span like 'last_%' order by detector, other_detector"
            ),
            health=of_kind("study.health_comparison", "kind, scope, attribute, measure, model"),
            health_warnings=of_kind("study.health_warnings", "kind, rule, first_recall desc nulls last, attribute, measure"),
            paper_curves=fetch(connection, "select * from study.study_paper_curves order by figure, curve, seq"),
            tolerance=fetch(connection, "select * from study.study_tolerance order by kind"),
            latency_tails=fetch(connection, "select * from study.latency_tails where drive_hours > 0 order by percentile"),
        )
    return replace_file(out, render_page(facts))
