"""Forms of a bundle: folders and archives, refused files and why, manifests that are wrong."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from lab.bundle import open_bundle
from lab.contract import REASONS, LabError
from lab.landing import FOLDER, ingest_bundle, lab_root
from lab.simulate import simulate
from lab.tests.bundles import BENCH, HEADER, MANIFEST, lab, write_bundle

ROWS = ["a.csv,bench,c,1", "sub/b.csv,bench,c,2"]
FILES = {"a.csv": BENCH, "sub/b.csv": BENCH.replace("20", "30")}


def landed(warehouse: Path, table: str, experiment: str = "e1") -> pl.DataFrame:
    paths = sorted(lab_root(warehouse).glob(f"{FOLDER}{experiment}/*/{table}.parquet"))
    return pl.concat([pl.read_parquet(path) for path in paths])


def archived(folder: Path, path: Path) -> Path:
    form = {".zip": "zip", ".gz": "gztar", ".tgz": "gztar"}.get(path.suffix, "tar")
    # a zip file of what the folder holds, a tar file of the folder
    top = (folder,) if form == "zip" else (folder.parent, folder.name)
    content = Path(shutil.make_archive(str(path.with_name("made")), form, *top)).read_bytes()
    path.write_bytes(pa.compress(content, "zstd", asbytes=True) if path.suffix == ".zst" else content)
    return path


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tgz", "b.tar.zst", "b.zip"])
def test_an_archive_lands_as_its_folder(name: str, tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "b", FILES, ROWS)
    ingest_bundle(tmp_path / "whole", folder)
    assert not ingest_bundle(tmp_path / "packed", archived(folder, tmp_path / name)).refused
    for table in ("bench_results", "configs"):
        assert landed(tmp_path / "packed", table).equals(landed(tmp_path / "whole", table))
    # the folder after its archive is nothing new
    assert ingest_bundle(tmp_path / "packed", folder).delivery_seq is None


def test_an_archive_that_leaves_its_folder_is_refused_whole(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b.tar", "w") as tarred:
        info = tarfile.TarInfo("../experiment.toml")
        tarred.addfile(info, io.BytesIO(b""))
    with pytest.raises(LabError, match="outside the archive"):
        ingest_bundle(tmp_path / "w", tmp_path / "b.tar")


def test_every_reason_is_given_where_it_applies(tmp_path: Path) -> None:
    """no_clock is of traces: lab/tests/test_reads.py."""
    (tmp_path / "secret").write_text(BENCH)
    folder = write_bundle(
        tmp_path / "b",
        {**FILES, "text.csv": "no header\n", "empty.csv": "benchmark,test,parameter,value,unit\n"},
        [
            "a.csv,bench,c,1", "gone.csv,bench,c,1", "../secret,bench,c,1", "link.csv,bench,c,1", "sub/b.csv,wc,c,1",
            "sub/b.csv,bench,nope,1", "a.csv,bench,c,zero", "text.csv,bench,c,1", "empty.csv,bench,c,1", "a.csv,bench,c,1,during",
        ],
    )  # fmt: skip
    (folder / "link.csv").symlink_to(tmp_path / "secret")
    refused = {(row["file"], row["reason"]): row["message"] for row in ingest_bundle(tmp_path / "w", folder).refused}
    assert set(refused) == {
        ("gone.csv", "missing_file"), ("../secret", "outside_bundle"), ("link.csv", "outside_bundle"), ("sub/b.csv", "unknown_tool"),
        ("sub/b.csv", "unknown_config"), ("a.csv", "bad_row"), ("text.csv", "unreadable"), ("empty.csv", "no_result"),
    }  # fmt: skip
    assert {reason for _, reason in refused} == set(REASONS) - {"no_clock"}
    assert "there are c" in refused["sub/b.csv", "unknown_config"]
    assert landed(tmp_path / "w", "bench_results").height == 2
    done = lab("ingest", folder, "-w", tmp_path / "v", "--strict")
    assert done.exit_code == 1 and "row 7: run_number is 'zero'; give a whole number from 1" in done.output


def test_awkward_bundles_land_as_planted(tmp_path: Path) -> None:
    folder = simulate("awkward", tmp_path / "bundles", 1)
    done = lab("ingest", folder, "-w", tmp_path / "w")
    assert done.exit_code == 0, done.output
    planted = pl.read_parquet(folder / "awkward-refused/truth/ingested_files.parquet").to_dicts()
    assert {row["reason"] for row in planted} == {*REASONS, None}
    found = {row["file"]: (row["reason"], row["rows_parsed"] or 0) for row in landed(tmp_path / "w", "files", "awkward-refused").to_dicts()}
    assert found == {row["file"]: (row["reason"], row["rows_parsed"]) for row in planted}
    assert landed(tmp_path / "w", "bench_results", "awkward-refused")["value"].sort().to_list() == [0.5, 2.0, 97.0, 100.0, 103.0, 4096.0]
    for name in ("reads", "writers", "sync-writes", "before-after"):
        files = landed(tmp_path / "w", "files", f"awkward-{name}")
        assert files.height >= 5 and files["reason"].null_count() == files.height


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("format = 1", "format = 2"), "format"),
        (('experiment_id = "e1"', 'experiment_id = "a/b"'), 'experiment_id is "a/b"'),
        (('experiment_id = "e1"', ""), "experiment_id is missing"),
        (('kind = "other"', 'kind = "fast"'), 'kind is "fast"; give one of sync_writes'),
        (('kind = "other"', 'kind = "other"\nexpected_runs = 0'), "expected_runs is 0"),
        (('kind = "other"', 'kind = "other"\nstarted_at = "noon"'), 'started_at is "noon"'),
        (('device_id = "d"\n[[configs]]', "[[configs]]"), r"devices\[1\].device_id is missing"),
        (
            ('config_id = "c"\ndevice_id = "d"', 'config_id = "c"\ndevice_id = "x"'),
            r'configs\[1\].device_id is "x"; there is no such block',
        ),
        (("[[devices]]", "[[device]]"), r'device_id is "d"; there is no such block; add one: \[\[devices\]\] with this device_id'),
        (("[[configs]]", "[[things]]"), "configs is missing"),
        (('device_id = "d"\n[[configs]]', 'device_id = "d"\n[[devices]]\ndevice_id = "d"\n[[configs]]'), "another block has the same"),
        (("format = 1", "format = "), "is no TOML"),
    ],
)
def test_a_wrong_manifest_lands_nothing_and_names_key_and_value(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    assert change[0] in MANIFEST
    folder = write_bundle(tmp_path / "b", FILES, ROWS, MANIFEST.replace(*change, 1))
    with pytest.raises(LabError, match=said):
        ingest_bundle(tmp_path / "w", folder)
    assert not lab_root(tmp_path / "w").exists()
    assert lab("ingest", folder, "-w", tmp_path / "w").exit_code == 1


@pytest.mark.parametrize("missing", ["experiment.toml", "runs.csv"])
def test_a_bundle_without_its_two_files_lands_nothing(missing: str, tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "b", FILES, ROWS)
    (folder / missing).unlink()
    with pytest.raises(LabError, match=f"holds no {missing}"):
        ingest_bundle(tmp_path / "w", folder)


def test_a_question_before_the_build_names_the_next_step(tmp_path: Path) -> None:
    assert "no experiment has landed there: `drivetail lab ingest BUNDLE`" in lab("choose", "e1", "-w", tmp_path / "w").output
    ingest_bundle(tmp_path / "w", write_bundle(tmp_path / "b", FILES, ROWS))
    assert "run `drivetail lab build`" in lab("choose", "e1", "-w", tmp_path / "w").output


@pytest.mark.parametrize(("name", "said"), [("runs.csv", r"give its folder, .*/b$"), ("a.csv", "is no folder and no archive")])
def test_a_file_of_a_bundle_is_not_the_bundle(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=said):
        ingest_bundle(tmp_path / "w", write_bundle(tmp_path / "b", FILES, ROWS) / name)


def test_unknown_columns_and_keys_are_left_out_with_a_note(tmp_path: Path) -> None:
    folder = write_bundle(
        tmp_path / "b", FILES, f"{HEADER},mood\na.csv,bench,c,1,,,,good\n", MANIFEST.replace("format", "colour = 1\nformat")
    )
    summary = ingest_bundle(tmp_path / "w", folder)
    assert len(summary.files) == 1 and not summary.refused
    assert any("column mood" in note for note in summary.notes) and any("colour" in note for note in summary.notes)


def test_factors_keep_names_with_dots(tmp_path: Path) -> None:
    factors = '[configs.factors]\nio.file.buffer.size = 4096\nfallocate = true\nscheduler = "none"\n'
    with open_bundle(write_bundle(tmp_path / "b", FILES, ROWS, MANIFEST + factors)) as bundle:
        found = {row["factor"]: row["value"] for row in bundle.manifest.tables["config_factors"]}
    assert found == {"io.file.buffer.size": "4096", "fallocate": "true", "scheduler": "none"}


def test_other_content_under_the_same_name_needs_a_greater_revision(tmp_path: Path) -> None:
    folder = write_bundle(tmp_path / "b", FILES, ROWS)
    ingest_bundle(tmp_path / "w", folder)
    (folder / "a.csv").write_text(BENCH.replace("10.5", "11"))
    done = lab("ingest", folder, "-w", tmp_path / "w")
    assert done.exit_code == 1 and "a.csv has other content" in done.output and "revision = 2" in done.output
    write_bundle(folder, {}, ROWS, MANIFEST.replace("format", "revision = 2\nformat"))
    assert ingest_bundle(tmp_path / "w", folder).delivery_seq == 2
    # a manifest that differs does too, but not one that is only written another way
    write_bundle(folder, {}, ROWS, MANIFEST.replace("format", 'title = "t"\nrevision = 2\nformat'))
    with pytest.raises(LabError, match=r"experiment\.toml says something else"):
        ingest_bundle(tmp_path / "w", folder)
    write_bundle(folder, {}, ROWS, "# a comment\n" + MANIFEST.replace("format", "revision = 2\nformat"))
    assert ingest_bundle(tmp_path / "w", folder).delivery_seq is None


def test_copies_of_another_experiments_files_are_reported(tmp_path: Path) -> None:
    other = MANIFEST.replace('"e1"', '"e2"')
    ingest_bundle(tmp_path / "w", write_bundle(tmp_path / "one", FILES, ROWS))
    renamed = {"copy.csv": BENCH, "own.csv": BENCH.replace("20", "40")}
    notes = ingest_bundle(tmp_path / "w", write_bundle(tmp_path / "two", renamed, ["copy.csv,bench,c,1", "own.csv,bench,c,2"], other)).notes
    assert notes == ["experiment e1 has landed with 1 file of the same bytes: a copy is no run of its own"]
