"""The console's figures: what is slow is drawn as the publication decided it."""

from datetime import datetime, timedelta

from console.figures import drive_hours, drive_latencies, group_tails, slow_map
from report.page.numbers import TIMES
from report.weekly.figures import heat_map

ROWS = [
    {"drive_id": "d", "label": "d", "hour_utc": datetime(2026, 1, 5) + timedelta(hours=hour), "slowdown": slowdown, "tail_1": slowdown,
     "tail_2": 1.0, "slowest_drive_id": "d", "is_slow": slowdown >= 3, "slow_at": 3.0}
    for hour, slowdown in enumerate((1.0, 2.5, 3.0))
]  # fmt: skip


def test_the_threshold_is_the_line_and_the_edge_of_the_shades() -> None:
    for figure in (drive_hours(ROWS, "d", "ssd", []), group_tails(ROWS)):
        assert figure is not None
        assert [shape.y0 for shape in figure.layout.shapes] == [3.0]
    shades = slow_map(ROWS)
    assert shades is not None
    (drawn,) = shades.data
    assert (drawn.zmin, drawn.zmax, drawn.colorscale[2][0]) == (1, 5, 0.5)
    assert list(drawn.colorbar.ticktext)[1] == f"3{TIMES}"


def test_a_drive_is_drawn_in_milliseconds_before_its_group() -> None:
    hours = [datetime(2026, 1, 5, hour) for hour in range(3)]
    latencies = ((8000, 7900.0, False), (None, 8000.0, False), (32000, 8000.0, True))
    names = ("latency_us", "median_latency_us", "is_slow")
    rows = [{"kind": "ssd", "hour_utc": hour, **dict(zip(names, given, strict=True))} for hour, given in zip(hours, latencies, strict=True)]
    figure = drive_latencies(rows)
    assert figure is not None and figure.layout.yaxis.ticksuffix == " ms"
    median, own, slow = figure.data
    assert [str(value) for value in own.y] == ["8.0", "nan", "32.0"] and list(slow.y) == [32.0]
    assert [round(float(value), 1) for value in median.y] == [7.9, 8.0, 8.0]


def test_shades_of_a_week_mean_the_same_in_every_week() -> None:
    monday = datetime(2026, 1, 5)
    scales = set()
    for ratio in (0.0, 0.01, 0.9):
        (drawn,) = heat_map([{"hour_utc": monday, "raid_hours": 100, "tail_hours": 100 * ratio, "tail_hour_ratio": ratio}], monday).data
        scales.add((drawn.zmin, drawn.zmax, drawn.colorbar.ticktext[-1]))
    assert len(scales) == 1 and scales.pop()[0] == 0


def test_without_rows_nothing_is_drawn() -> None:
    assert drive_hours([], "d", "ssd", []) is group_tails([]) is slow_map([]) is drive_latencies([]) is None
