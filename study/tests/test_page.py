"""The study page: its numbers and curves are the marts', its words say what the verdicts say, and it opens anywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pages import Page, check_accessible, opened

from engine.warehouse import Warehouse
from report.page.numbers import DETECTOR_WORDS, NONE
from study.pages.figures import FIGURES, shade
from study.pages.write import write_study
from study.tests.stand_in import HOSTILE, publish_study
from study.words import FINDINGS
from tests.proof.support import rows
from tests.safety.test_names import check_inert

pytestmark = pytest.mark.xdist_group("report")

SECTIONS = ["digest", "findings", "variants", "figures", "others", "fleet", "words"]
APPENDIX = ["distribution", "interval-hours", "gap-hours", "wait-hours", "outage-hours", "recur-hours"]
"""Figures of the fleet by itself."""


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A study written by hand, whose sentences and marks are known."""
    return publish_study(tmp_path_factory.mktemp("study") / "warehouse")


@pytest.fixture(scope="module")
def page_by_hand(by_hand: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(by_hand, tmp_path_factory.mktemp("page") / "study.html")


@pytest.fixture(scope="module")
def page_of_nothing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a fleet without data."""
    folder = tmp_path_factory.mktemp("nothing")
    return write_study(publish_study(folder / "warehouse", is_empty=True), folder / "study.html")


@pytest.fixture(scope="module")
def page_file(eventful: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(eventful, tmp_path_factory.mktemp("page") / "study.html")


# --------------------------------------------------------------------------------------------------------------------
# What it says


def test_its_appendix_says_which_smart_attributes_differ(page_by_hand: Path, page_of_nothing: Path):
    page = page_by_hand.read_text(encoding="utf-8")
    assert "<p>Disks: media_errors differs.</p>" in page and "<p>SSDs: too few RAID groups" in page
    # what was caught before the first slow hour, of which a drive's history knows nothing
    section = page[page.index("Which SMART attributes") : page.index("Words, and how to ask")]
    shown = " ".join(re.sub(r"<[^>]*>", " ", section).split())
    assert "media_errors, change since the day before 0.61 0.42 to 0.80 25.0% 75.0% 30.0% 50.0%" in shown
    assert f"slow in the 28 days before {NONE} {NONE} {NONE} 0% 37.5% 48.0%" in shown and "49.0%" not in shown
    empty = page_of_nothing.read_text(encoding="utf-8")
    assert "nothing is known" in empty and "Backblaze" in empty


def test_its_appendix_says_what_the_tail_sees_that_the_mean_does_not(page_by_hand: Path, page_of_nothing: Path):
    page = page_by_hand.read_text(encoding="utf-8")
    assert "By their p99.9, 62 of 5,480 drive-hours were slow; the mean does not show 12 of them, of 1 drive. 8 others" in page
    assert "By their p50" not in page  # of which there is no hour
    assert "No histogram of latencies has landed" in page_of_nothing.read_text(encoding="utf-8")


def test_the_appendix_shows_fleet_slowness_and_detector_agreement(eventful: Warehouse, page_file: Path):
    page = Page(page_file)
    figures = {attrs["id"] for tag, attrs in page.tags if tag == "div" and attrs.get("class") == "plotly-graph-div"}
    assert {f"figure-{name}" for name in APPENDIX} <= figures
    assert re.search(r"Of \d+ slow intervals? of disks, \S+ \(\d+\) lasted 1 hour and \S+ \(\d+\) 8 hours or longer", page.words)
    table = page.text.split('<table class="matrix">')[1].split("</table>")[0]
    cells = [
        [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.S)]
        for row in table.split("<tr>")[1:]
    ]
    names, held = cells[0][1:], {row[0]: row[1:] for row in cells[1:]}
    judged = [pair for pair in rows(eventful, "select * from report.detector_agreement where span like 'last_%'") if pair["drive_count"]]
    for pair in judged:
        low, high = sorted((pair["detector"], pair["other_detector"]))
        low, high = DETECTOR_WORDS[low], DETECTOR_WORDS[high]
        assert held[low][names.index(high)] == f"{pair['both_count']:,} of {pair['either_count']:,}"
        assert held[high][names.index(low)] == ("\N{EN DASH}" if pair["kappa"] is None else f"{pair['kappa']:.2f}")
    assert len(judged) == len(names) * (len(names) - 1) / 2 > 20


def test_its_numbers_are_the_marts(eventful: Warehouse, page_file: Path):
    shown: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    row: dict[str, str | None] = {}
    for tag, attrs in Page(page_file).tags:
        if tag == "tr":
            row = attrs
        elif "data-id" in row:
            key = row["data-id"], row["data-kind"]
            shown.setdefault(key, {"verdict": row["data-verdict"], "value": None, "numerator": None, "denominator": None})
            shown[key] |= {
                name: float(attrs[f"data-{name}"] or "") for name in ("value", "numerator", "denominator") if f"data-{name}" in attrs
            }
    held = rows(eventful, "select * from marts.study_results")
    assert len(held) == len(shown) > 0
    for one in held:
        assert shown[one["id"], one["kind"]] == {name: one[name] for name in ("verdict", "value", "numerator", "denominator")}


def test_its_variants_are_the_marts(eventful: Warehouse, page_file: Path):
    shown = {
        (attrs["data-variant"], attrs["data-variant-id"], attrs["data-variant-kind"]): attrs.get("data-value")
        for _, attrs in Page(page_file).tags
        if "data-variant" in attrs
    }
    held = rows(eventful, "select * from study.study_variants")
    assert {key: value and float(value) for key, value in shown.items()} == {
        (row["variant"], row["id"], row["kind"]): row["value"] for row in held
    }


def test_its_header_names_publication_coverage_and_verdicts(eventful: Warehouse, page_file: Path):
    page = Page(page_file)
    (publication,) = rows(eventful, "select publication_id from marts.publication")
    assert publication["publication_id"] in page.words
    shown = page.metrics()
    for row in rows(eventful, "select * from study.fct_fleet_coverage"):
        assert float(shown[f"reported_ratio_{row['kind']}"] or "nan") == row["reported_ratio"]
    counts = {
        row["verdict"]: row["count"]
        for row in rows(eventful, "select verdict, count(*) as count from marts.study_results where same_as is null group by 1")
    }
    for verdict in ("agrees", "differs", "cannot tell", "no data", "not comparable"):
        assert int(shown[verdict.replace(" ", "_")] or -1) == counts.get(verdict, 0)


def test_every_finding_has_its_query(page_file: Path):
    page = Page(page_file)
    results = [attrs["id"] for tag, attrs in page.tags if tag == "tbody" and attrs.get("id")]
    assert results == [f"finding-{number}" for number in FINDINGS if f"finding-{number}" in results]
    for name in results:
        number = int(str(name).removeprefix("finding-"))
        assert f"drivetail sql study/analyses/finding_{number:02d}_" in page.words
        assert f"-- Finding {number}: " in page.words


def test_differences_are_described_in_words(page_by_hand: Path):
    words = re.sub(r"\s+", " ", Page(page_by_hand).words)
    for sentence in (
        "Of 9 numbers of the paper that this fleet can be judged by, 6 agree and 3 differ. Of 1 it cannot tell",
        "For 4 more there is too little data; 2 are sizes",
        "2 of the 15 findings hold in every number that can be judged: 8, 13.",
        "2 of the 15 findings differ in at least one number: 1, 12.",
        "1 of the 15 findings has intervals too wide to tell: 2.",
        "10 of the 15 findings cannot be judged for lack of data: 3, 4, 5, 6, 7, 9, 10, 11, 14, 15.",
        "SSDs: the share of hours in which a drive was at least twice as slow as its group is 0.463% "
        "(95% interval 0.210 to 0.563); the paper has 0.58%.",
        "Disks: the slowdown that one hour in 10,000 reaches is 4.28\u00d7 (95% interval 3.10 to 6.50); the paper has 9\u00d7 or more.",
        "stayed below 1.5 times their group is 99.013% (95% interval 97.200 to 99.700); the paper has 94.3%.",
    ):
        assert sentence in words


def test_a_fleet_of_which_nothing_is_known(page_of_nothing: Path):
    page = Page(page_of_nothing)
    for sentence in (
        "This fleet has too little data to be judged by any number of the paper.",
        "None of the 15 findings hold in every number that can be judged.",
        "15 of the 15 findings cannot be judged for lack of data",
        "There are no variants.",
    ):
        assert sentence in page.words
    assert "What differs" not in page.words
    assert page.words.count("This fleet: no data.") == len(FIGURES)


def test_one_kind_shows_nothing_of_the_other(by_hand: Warehouse, tmp_path: Path):
    page = Page(write_study(by_hand, tmp_path / "study.html", kind="ssd"))
    assert "SSDs only." in page.words
    assert {attrs["data-kind"] for _, attrs in page.tags if "data-kind" in attrs} == {"ssd"}
    shown = [attrs["data-figure"] for _, attrs in page.tags if "data-figure" in attrs]
    assert shown == ["2a", "2b", "4b", "5a", "5b", "6a", "6b", "7a", "7b", "7c", "7d", "8b", "9", "10b", "11b", "11d"]
    assert '"name":"SSD"' in page.text
    assert '"name":"Disk"' not in page.text


def test_markup_in_data_is_text(page_by_hand: Path):
    page = Page(page_by_hand)
    assert HOSTILE in page.words
    assert HOSTILE not in page.text


def test_the_page_is_accessible_to_screen_readers(page_file: Path):
    page = Page(page_file)
    assert [attrs["id"] for tag, attrs in page.tags if tag == "section"] == SECTIONS
    check_accessible(page)


def test_shades_of_a_kind_differ_and_stay_its_colour():
    for kind, strongest in (("disk", 2), ("ssd", 1)):
        shades = [shade(kind, position, 10) for position in range(10)]
        assert len(set(shades)) == 10
        for one in shades:
            parts = [int(one[at : at + 2], 16) for at in (1, 3, 5)]
            assert parts[strongest] == max(parts)
            assert parts[0] == min(parts)


# --------------------------------------------------------------------------------------------------------------------
# In a browser


@pytest.fixture(scope="module")
def drawn(browser: Any, page_file: Path) -> dict[str, Any]:
    """Contents that the browser drew: by figure its traces, axes and whether it says `no data`."""
    page, troubles = opened(browser, page_file)
    figures = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("[data-figure]")].map(one => {
            const plot = one.querySelector(".plotly-graph-div"), layout = plot._fullLayout;
            return [one.dataset.figure, {
                bands: plot._fullData.filter(line => line.fill !== "none").map(line => line.legendgroup),
                traces: plot._fullData.filter(line => line.fill === "none").map(line => ({
                    group: line.legendgroup, dash: line.line.dash, colour: line.line.color, x: [...line.x], y: [...line.y]})),
                axes: [layout.xaxis, layout.yaxis].map(axis => [axis.type, axis.range[0], axis.range[1]]),
                says: (layout.annotations || []).map(note => note.text),
                lines: plot.querySelectorAll(".scatterlayer .trace").length,
            }];
        }))"""
    )
    page.context.close()
    assert troubles == []
    return dict(figures)


def test_the_fleets_curves_are_the_marts(eventful: Warehouse, drawn: dict[str, Any]):
    held: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(eventful, "select * from marts.study_curves order by figure, curve, x"):
        held.setdefault((row["figure"], row["curve"]), []).append(row)
    seen = {(figure, line["group"]): line for figure, one in drawn.items() for line in one["traces"] if line["dash"] == "solid"}
    assert seen.keys() == held.keys()
    for (figure, curve), points in held.items():
        line = seen[figure, curve]
        assert line["x"] == [point["x"] for point in points for _ in range(2)]
        shares = [share for point in points for share in (point["y_left"], point["y"])]
        # Figure 6a has the share of drives at x or more, on an axis that has no 0
        assert line["y"] == ([1 - share if share < 1 else None for share in shares] if figure == "6a" else shares)


def test_a_curve_has_a_band_where_it_has_an_interval(eventful: Warehouse, drawn: dict[str, Any]):
    held = {
        (row["figure"], row["curve"])
        for row in rows(eventful, "select distinct figure, curve from marts.study_curves where y_low <= y and y <= y_high")
    }
    assert held
    assert {(figure, curve) for figure, one in drawn.items() for curve in one["bands"]} == held


def test_the_papers_curves_are_dashed_over_the_fleets(eventful: Warehouse, drawn: dict[str, Any]):
    held: dict[tuple[str, str], set[tuple[float, float]]] = {}
    for row in rows(eventful, "select * from study.study_paper_curves"):
        if not row["figure"].startswith("12"):
            held.setdefault((row["figure"], row["curve"]), set()).add((row["x"], row["y"]))
    seen: dict[tuple[str, str], set[tuple[float, float]]] = {}
    for figure, one in drawn.items():
        groups: dict[str, list[dict[str, Any]]] = {}
        for line in one["traces"]:
            groups.setdefault(line["group"], []).append(line)
        for curve, lines in groups.items():
            assert len({line["colour"] for line in lines}) == 1
            assert [line["dash"] != "solid" for line in lines] in ([False], [False, True], [True])
            if lines[-1]["dash"] != "solid":
                seen[figure, curve] = set(zip(lines[-1]["x"], lines[-1]["y"], strict=True))
    assert seen == held


def test_the_axes_are_the_papers(drawn: dict[str, Any]):
    assert drawn.keys() == {figure.name for figure in FIGURES}
    assert {name for name, one in drawn.items() if one["axes"][0][0] == "log"} == {"2b", "5a", "6a", "6b", "11a", "11b", "11c", "11d"}
    assert {name for name, one in drawn.items() if one["axes"][1][0] == "log"} == {"6a"}
    for name, low, high in (("4a", 0.98, 1.0), ("4b", 0.97, 1.0), ("5a", 0.6, 1.0), ("8b", 0.99, 1.0), ("11a", 0.0, 0.35)):
        assert drawn[name]["axes"][1][1] == low
        assert high <= drawn[name]["axes"][1][2] < high + 0.02 * (high - low)


def test_a_figure_without_data_says_so(eventful: Warehouse, drawn: dict[str, Any]):
    with_data = {row["figure"] for row in rows(eventful, "select distinct figure from marts.study_curves")}
    assert {name for name, one in drawn.items() if one["says"] != ["<b>no data</b>"]} == with_data


@pytest.mark.parametrize("width", [420, *(pytest.param(width, marks=pytest.mark.soak) for width in (800, 1180))])
def test_the_page_opens_offline_without_an_error(browser: Any, page_file: Path, width: int):
    page, troubles = opened(browser, page_file, width)
    assert troubles == []
    sizes = page.eval_on_selector_all(".plotly-graph-div", "all => all.map(one => [one.id, one._fullLayout.width, one.clientWidth])")
    assert len(sizes) == len(FIGURES) + len(APPENDIX)
    for name, drawn_width, room in sizes:
        assert abs(drawn_width - room) <= 1, f"{name} is {drawn_width} wide in {room}"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("summary").first.click()
    assert page.locator("details pre").first.is_visible()
    page.context.close()


def test_figures_of_one_number_stand_side_by_side(browser: Any, page_file: Path):
    page, _ = opened(browser, page_file)
    tops = page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('[data-figure]')].map(one => [one.dataset.figure, one.offsetTop]))"
    )
    for left, right in (("2a", "2b"), ("4a", "4b"), ("7c", "7d"), ("10a", "10b"), ("11c", "11d")):
        assert tops[left] == tops[right]
    page.context.close()


def test_the_study_page_is_inert(tmp_path: Path) -> None:
    page = Page(write_study(publish_study(tmp_path / "warehouse"), tmp_path / "study.html"))
    check_inert(page)
    assert HOSTILE in page.words
