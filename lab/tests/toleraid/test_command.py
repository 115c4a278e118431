"""`drivetail toleraid` and `drivetail what-if --policy` on a built warehouse."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.build import build
from engine.warehouse import Warehouse
from lab.tests.toleraid import plain
from report.page.tolerance import tolerance_words
from tests.golden import awkward_fleet, copied
from tests.proof.support import rows

pytestmark = pytest.mark.xdist_group("tolerance")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A copy, which runs are added to."""
    return copied(awkward_fleet(), tmp_path_factory.mktemp("tolerance") / "warehouse")


def said(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_a_run_is_shown_at_once_and_repeated_to_the_bit(whole: Warehouse, tmp_path: Path) -> None:
    call = ["toleraid", "run", "--requests", 20_000, "--seed", 5, "--format", "json", "--warehouse", whole.root]
    first = json.loads(said(*call, "--save-requests", tmp_path / "one.parquet"))
    assert json.loads(said(*call, "--save-requests", tmp_path / "two.parquet")) == first
    digests = {hashlib.sha256((tmp_path / f"{name}.parquet").read_bytes()).hexdigest() for name in ("one", "two")}
    assert len(digests) == 1
    assert len(rows(whole, f"select * from lab.fct_tolerance_runs where run_id = '{first[0]['run_id']}'")) == 5
    share = next(row["share_2_ratio"] for row in first if row["policy"] == "none")
    ((tails, hours),) = (row.values() for row in rows(whole, "select count_if(is_tail_hour), count(*) from marts.fct_raid_hours"))
    assert share == pytest.approx(tails / hours, abs=3 * math.sqrt(tails / hours / 20_000))
    saved = pq.read_table(tmp_path / "one.parquet").to_pylist()
    width = first[0]["data_drives"]
    requests = [([row[f"s_d{i + 1}"] for i in range(width)], [row["s_p"], row["s_q"]]) for row in saved]
    assert [(row["T_adaptive"], row["extra_adaptive"]) for row in saved] == plain.serve(requests, 2.0, 3)["adaptive"]
    distribution = first[0]["distribution_id"]
    again = json.loads(said(*call, "--slowdowns", distribution))
    assert again[0]["p999"] == first[0]["p999"]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_papers_numbers_agree_or_the_reason_is_given(whole: Warehouse, seed: int) -> None:
    for name in ("rare", "periodic"):
        for jitter in ("paper", "none"):
            said("toleraid", "run", "--slowdowns", name, "--jitter", jitter, "--seed", seed, "--warehouse", whole.root)
    results = rows(whole, "select * from lab.fct_tolerance_results")
    assert {row["verdict"] for row in results} == {"agrees", "not comparable"}, [row for row in results if row["verdict"] == "differs"]
    assert all((row["verdict"] == "agrees") is (row["reason"] is None) for row in results)
    compared = {row["id"] for row in results if row["verdict"] == "agrees"}
    assert len(compared) == 69 and not {"TOL-21", "TOL-22", "F12A-Nopolicy-5", "F12A-Proactive2-P99", "F12B-Nopolicy-MAX"} & compared


@pytest.mark.proof
def test_the_report_computes_the_fleet_study_if_no_command_has(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    shutil.copytree(awkward_fleet().raw / "deliveries", warehouse.raw / "deliveries")
    build(warehouse)
    out = tmp_path / "tolerance.html"
    report = ["toleraid", "report", "--out", out, "--warehouse", warehouse.root]
    assert "nothing is simulated yet" in said(*report, code=1)
    said("toleraid", "run", "--slowdowns", "rare", "--jitter", "paper", "--requests", 20_000, "--warehouse", warehouse.root)
    said(*report)
    page = out.read_text()
    totals = rows(warehouse, "select * from study.study_tolerance order by kind")
    assert sum(row["tail_hours"] for row in totals) > 0
    for sentence in tolerance_words(totals):
        assert sentence in page
    (run_id,) = {row["run_id"] for row in rows(warehouse, "select run_id from lab.fct_tolerance_runs")}
    assert f"20,000 requests of 6 data drives and 2 parity, run {run_id}." in page


def test_apply_equals_the_plain_reference(tmp_path: Path) -> None:
    given, out = tmp_path / "in.csv", tmp_path / "out.csv"
    values = random.Random(3)
    for width, sr, parity in [(4, 1, 2), (6, 3, 2), (14, 10, 2), (6, 3, 1)]:
        slow = [values.choice([1.0, 1.3, 2.0, 4.7]) for _ in range(width)]
        requests = []
        for _ in range(300):
            slow = [time if values.random() < 0.9 else values.choice([1.0, 1.3, 2.0, 4.7]) for time in slow]
            requests.append((list(slow), [values.choice([1.0, 1.5, 3.0]) for _ in range(parity)]))
        header = [*(f"d{i + 1}" for i in range(width)), *"pq"[:parity]]
        given.write_text("\n".join([",".join(header), *(",".join(map(repr, data + back)) for data, back in requests)]))
        said("toleraid", "apply", given, "--out", out, "--sr", sr, "--parity", parity)
        with out.open() as file:
            found = list(csv.DictReader(file))
        for policy, expected in plain.serve(requests, 2.0, sr).items():
            texts = [(repr(time), str(extra)) for time, extra in expected] or [("", "")] * 300
            assert [(row[f"T_{policy}"], row[f"extra_{policy}"]) for row in found] == texts


def test_a_trace_counts_reads_that_do_not_touch_every_drive(whole: Warehouse, tmp_path: Path) -> None:
    trace, cut = tmp_path / "trace.csv", tmp_path / "msr.csv"
    trace.write_text("time_s,offset_bytes,length_bytes,op\n0,0,16384,R\n1,4095,12290,R\n2,0,16384,W\n3,0,8192,R\n9,4096,65536,read\n")
    call = ["toleraid", "run", "--slowdowns", "periodic", "--data-drives", 4, "--format", "json", "--warehouse", whole.root]
    first = json.loads(said(*call, "--trace", trace))[0]
    assert (first["requests"], first["partial_requests"]) == (3, 1)
    cut.write_text(
        "128166372003061629,usr,0,Read,0,16384,41286\n128166372013061629,usr,0,Read,0,4096,1\n128166372013061629,usr,0,Write,0,9,1\n"
    )
    second = json.loads(said(*call, "--trace", cut, "--layout", "rotating"))[0]
    assert (second["requests"], second["partial_requests"]) == (1, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1,2,3,1,1\n", "row 1: no header"),
        ("d1,d2,p,q\n1,-2,1,1\n", "row 2: d2 = '-2' is not a number of at least 0"),
        ("d1,d2,p,q\n1,2,1,1\n1,nan,1,1\n", "row 3: d2 = 'nan'"),
        ("d1,d2,p,q\n1,2,1\n", "row 2: 3 values, but 4 columns"),
        ("d1,d3,p,q\n1,2,1,1\n", "they must be d1..dN,p,q"),
        ("p,q\n1,1\n", "they must be d1..dN,p,q"),
        ("d1,p,q\n", "no rows after the header"),
    ],
)
def test_a_file_that_cannot_be_used_gets_one_line(tmp_path: Path, text: str, why: str) -> None:
    given = tmp_path / "in.csv"
    given.write_text(text)
    line = said("toleraid", "apply", given, "--out", tmp_path / "out.csv", code=1)
    assert why in line and line.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()


def test_usage(whole: Warehouse, tmp_path: Path) -> None:
    run = ["toleraid", "run", "--warehouse", whole.root]
    assert "0 is not in the range" in said(*run, "--data-drives", 0, code=2)
    assert "'lazy' is no policy; there are none, reactive" in said(*run, "--policies", "none,lazy", code=2)
    assert "no such file or stored distribution" in said(*run, "--slowdowns", "nothing", code=1)
    (tmp_path / "s.csv").write_text("slowdown,weight\n1,0\n")
    assert "no weight is above 0" in said(*run, "--slowdowns", tmp_path / "s.csv", code=1)
    assert "is not one of" in said("what-if", "--policy", "lazy", "--warehouse", whole.root, code=2)
    assert "cannot be used with" in said("what-if", "--policy", "none", "--worst", 1, "--warehouse", whole.root, code=2)


def test_what_if_by_policy_is_exact(whole: Warehouse) -> None:
    def completion(policy: str, tails: list[float], st: float) -> tuple[float, int]:
        late = sum(1 for tail in tails if tail >= st)
        if policy == "none":
            return tails[0], 0
        if policy == "reactive":
            return plain.reactive([*tails, 1.0], [1.0, 1.0], st)
        ahead = {"proactive1": 1, "proactive2": 2, "adaptive": min(late, 2)}[policy]
        # with one drive masked the second is waited for, but never less than the median
        return ([tails[0], max(tails[1], 1.0), max(tails[2], 1.0)][ahead], ahead)

    hours = rows(whole, "select * from marts.fct_raid_hours")
    for st in (2.0, 1.3):
        answer = json.loads(said("what-if", "--policy", "all", "--st", st, "--format", "json", "--warehouse", whole.root))
        for row in answer:
            mine = [hour for hour in hours if hour["kind"] == row["kind"]]
            found = [completion(row["policy"], [hour["tail_1"], hour["tail_2"], hour["tail_3"]], st) for hour in mine]
            times = sorted(time for time, _ in found)
            assert row["raid_hours"] == len(times)
            assert (row["tail_hours"], row["hours_above_3"]) == (sum(t >= 2 for t in times), sum(t > 3 for t in times))
            assert row["p99"] == times[-(-len(times) * 99 // 100) - 1]
            weights = [hour["raid_io_count"] for hour in mine]
            if not any(weights):
                weights = [1] * len(mine)
            extra = sum((w or 0) * e / hour["data_drive_count"] for w, (_, e), hour in zip(weights, found, mine, strict=True))
            assert row["extra_read_ratio"] == pytest.approx(extra / sum(w or 0 for w in weights))


def test_what_if_by_policy_agrees_with_skipped_drives_and_the_study(whole: Warehouse) -> None:
    told = said("what-if", "--policy", "all", "--format", "json", "--warehouse", whole.root)
    answer = {(row["kind"], row["policy"]): row for row in json.loads(told)}
    for skipped in (1, 2):
        for row in json.loads(said("what-if", "--skip-slowest", skipped, "--format", "json", "--warehouse", whole.root)):
            assert answer[row["kind"], f"proactive{skipped}"]["tail_hours"] == row["tail_hours_left"]
    tails = Counter(hour["kind"] for hour in rows(whole, "select kind from marts.fct_raid_hours where is_tail_hour"))
    for row in rows(whole, "select * from study.study_tolerance"):
        adaptive = answer[row["kind"], "adaptive"]
        assert answer[row["kind"], "none"]["tail_hours"] == row["tail_hours"] == tails[row["kind"]]
        assert adaptive["tail_hours_avoided"] == row["tail_hours_avoided"]
        assert adaptive["extra_read_ratio"] == pytest.approx(row["extra_read_ratio"])
        for end in ("low", "high"):
            assert adaptive[f"avoided_{end}"] == (pytest.approx(row[f"tail_hours_avoided_{end}"]) if row["tail_hours"] else None)
    for kind, policy in answer:
        if policy == "reactive":
            assert answer[kind, policy]["tail_hours"] == answer[kind, "none"]["tail_hours"], "its rescue ends at 3"
