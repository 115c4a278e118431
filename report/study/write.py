"""Write the study page: this fleet beside The Tail at Store, one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path

from engine.read import fetch, publication_of
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file
from report.study.page import StudyFacts, render_page
from report.study.tolerance import fetch_tolerance
from report.study.words import fetch_results


def write_study(warehouse: Warehouse, out: Path, *, kind: str | None = None) -> Path:
    """Write the page of the current publication.

    out: HTML file; it is replaced in one step. kind: `disk` or `ssd`; by default both.
    Returns: the file.
    Raises: QueryError without a publication, or with one that holds no study.
    """
    with publication_of(warehouse) as connection:
        (publication,) = fetch(connection, "select publication_id, published_at, last_hour_utc from marts.publication")
        facts = StudyFacts(
            kind=kind,
            publication=publication,
            coverage=fetch(
                connection, "select * from marts.fct_fleet_coverage where $kind is null or kind = $kind order by kind", {"kind": kind}
            ),
            results=fetch_results(connection, kind),
            variants=fetch(
                connection,
                "select * from marts.study_variants where $kind is null or kind = $kind order by variant, id, kind",
                {"kind": kind},
            ),
            curves=fetch(
                connection,
                "select * from marts.study_curves where $kind is null or kind = $kind order by figure, curve, x",
                {"kind": kind},
            ),
            percentiles=fetch(
                connection,
                "select * from marts.fct_weekly_percentiles"
                " where week_utc = (select week_utc from marts.dim_weeks where is_complete order by week_utc desc limit 1)"
                " and ($kind is null or kind = $kind) order by kind, series, percentile",
                {"kind": kind},
            ),
            durations=fetch(
                connection,
                "select * from marts.fct_duration_shares where $kind is null or kind = $kind order by measure, kind, hours",
                {"kind": kind},
            ),
            duration_summary=fetch(
                connection,
                "select * from marts.fct_duration_summary where $kind is null or kind = $kind order by measure, kind",
                {"kind": kind},
            ),
            detectors=fetch(
                connection, "select * from marts.detector_agreement where span like 'last_%' order by detector, other_detector"
            ),
            paper_curves=fetch(connection, "select * from marts.study_paper_curves order by figure, curve, seq"),
            tolerance=fetch_tolerance(connection),
        )
    return replace_file(out, render_page(facts))
