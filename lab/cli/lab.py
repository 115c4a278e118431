"""`drivetail lab`: experiments on drives, filesystems and settings."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from drivetail.cli.options import Failure, format_option, in_one_line, progress_of, warehouse_option
from drivetail.terminal import as_json, pass_on, say, say_rows
from engine.warehouse import Warehouse
from report.words import counted_noun

if TYPE_CHECKING:
    from lab.landing import Landed


class LabGroup(click.Group):
    """Turns what is wrong with a bundle, an experiment or another file that was given into one line."""

    def invoke(self, ctx: click.Context) -> Any:
        from lab.contract import LabError

        try:
            with in_one_line(str(ctx.info_name)):
                return super().invoke(ctx)
        except LabError as error:
            raise Failure(str(error)) from error


@click.group(cls=LabGroup)
def lab() -> None:
    """Qualify drives, filesystems and settings by experiment.

    \b
    drivetail lab report BUNDLE     all of it, to a page
    drivetail lab ingest BUNDLE     take in what the tools measured
    drivetail lab build             compute it and publish it
    drivetail lab status            what has landed, and what is missing
    """


@lab.command("ingest")
@click.argument("bundles", nargs=-1, required=True, metavar="BUNDLE...", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit 1 if a file is refused.")
@warehouse_option
def ingest_bundles(warehouse: Warehouse, bundles: tuple[Path, ...], strict: bool) -> None:
    """Land experiment bundles: folders or archives.

    A bundle holds experiment.toml, runs.csv and the tools' output. Landing it again changes nothing. A folder of bundles is all of them.
    """
    from lab.bundle import bundles_in

    refused = 0
    for place in [bundle for given in bundles for bundle in bundles_in(given)]:
        refused += len(_land(warehouse, place).refused)
    if refused and strict:
        raise Failure(f"{counted_noun(refused, 'file')} refused (see above); the others have landed")


def _land(warehouse: Warehouse, place: Path) -> Landed:
    """Land one bundle and say what became of its files."""
    from lab.landing import ingest_bundle

    landed = ingest_bundle(warehouse.root, place)
    for note in landed.notes:
        say(f"note: {note}")
    for row in landed.refused:
        say(f"refused: {row['file']}: {row['reason']}: {row['message']}")
    for row in landed.files:
        if row["notes"]:
            say(f"note: {row['file']}: {row['notes']}")
        if row["lines_rejected"]:
            say(f"note: {row['file']}: {counted_noun(row['lines_rejected'], 'line')} did not parse; first: {row['first_rejected']!r}")
    taken = len(landed.files) - len(landed.refused)
    known = f", {counted_noun(landed.known, 'file')} had landed before" if landed.known else ""
    none = "; nothing new, so nothing changed" if landed.delivery_seq is None else ""
    say(f"{landed.experiment_id}: {counted_noun(taken, 'file')} taken, {len(landed.refused)} refused{known}{none}")
    return landed


@lab.command("build")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@warehouse_option
def build(warehouse: Warehouse, experiments: tuple[str, ...]) -> None:
    """Compute the experiments that have changed, and publish.

    An EXPERIMENT that is named is computed in any case. `drivetail build` runs none of this.
    """
    _build(warehouse, experiments)


def _build(warehouse: Warehouse, experiments: tuple[str, ...] = ()) -> None:
    from lab.build import build_lab

    with progress_of(warehouse, "Building the lab") as advance:
        summary = build_lab(warehouse, experiments, advance)
    say(
        f"Computed {counted_noun(len(summary.computed), 'experiment')} of {len(summary.experiments)}; "
        f"published {summary.publication.publication_id} in {warehouse.published}"
    )


@lab.command("status")
@click.argument("experiment", required=False)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@click.option("--check", is_flag=True, help="Exit 1 if a file is refused, or a run or a cell is missing.")
@warehouse_option
def status(warehouse: Warehouse, experiment: str | None, is_json: bool, check: bool) -> None:
    """Show what has landed and what is missing.

    Refused files with the reason, experiments that are not built yet, runs and cells that have fewer results than expected.
    """
    from lab.ask.status import collect, in_words, troubles

    found = collect(warehouse, experiment)
    pass_on(as_json(found)) if is_json else say(in_words(found))
    wrong = troubles(found)
    if check and wrong:
        raise Failure(f"{wrong[0]}" + (f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""))


class FileSize(click.ParamType[int]):
    """`small`, or a number of bytes with K, M or G after it. Gives bytes, 0 for small."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int) or value == "small":
            return value if isinstance(value, int) else 0
        found = re.fullmatch(r"([1-9][0-9]{0,12})([KMGT]?)(i?B)?", value.strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is no size; give small, or bytes such as 16M", param, ctx)
        return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")


@lab.command("run")
@click.argument("protocol")
@click.option("--target", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder on the filesystem to test.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="BUNDLE", help="Folder of the bundle.")
@click.option("--runs", type=click.IntRange(min=1), help="Repetitions.  [default: those of the protocol]")
@click.option("--phase", type=click.Choice(["before", "after", "stress"]), help="Only this phase.")
@click.option("--size", type=FileSize(), help="Size of the files, or `small` for a short run.  [default: those of the protocol]")
@click.option("--dry-run", is_flag=True, help="Say what would run, and stop.")
def run_protocol(protocol: str, target: Path, out: Path, runs: int | None, phase: str | None, size: int | None, dry_run: bool) -> None:
    """Run an experiment on this machine and record it.

    PROTOCOL is sync-writes: throughput and latency of synchronous writes over 13 buffers, by iozone, else by fio. Or before-after:
    benchmarks, a stress and the benchmarks again. Or reads: files read in turn in three modes, for 24 hours. Or writers: one, two and four
    concurrent writers, and how fragmented their files are. It writes only below --target and --out. Each finished run is kept: the same
    call goes on where an earlier one stopped.
    """
    from lab.run import Size, carry_out, module_of, prepare

    module = module_of(protocol)
    defaults = module.SMALL if size == 0 else module.FULL
    asked = Size(runs or defaults.runs, size or defaults.file_bytes)
    plan, recording = prepare(protocol, target, out, asked, phase or "")
    left = [step for step in plan.steps if not recording.has(step.listings)]
    for note in plan.notes:
        say(f"note: {note}")
    share = len(left) / max(len(plan.steps), 1)
    where = f"{recording.target.mount_point} ({recording.target.filesystem})"
    say(
        f"{protocol} on {where}: {counted_noun(len(left), 'step')} of {len(plan.steps)} "
        f"left, writes {int(plan.writes_bytes * share) >> 20} MiB, at most {plan.uses_bytes >> 20} MiB at once, below {target}; "
        f"at least {sum(step.seconds for step in left):.0f} s"
    )
    if dry_run:
        for step in left:
            say(f"  {step.command}")
        return
    done = carry_out(plan, recording, say)
    say(f"Bundle: {out}, {counted_noun(done, 'step')} done; `drivetail lab report {out}` takes it in and writes its page")


@lab.command("simulate")
@click.argument("scenario")
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="BUNDLE", help="Folder to write, new or empty."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of the random numbers.")
@click.option("--parameters", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="JSON file of parameters.")
def simulate_bundle(scenario: str, out: Path, seed: int, parameters: Path | None) -> None:
    """Write a synthetic experiment with known truth.

    \b
    SCENARIO is one of
      sync-writes            iozone over 13 buffers on several filesystems
      before-after           77 cells before and after a stress by IOR
      reads-intrinsic        block traces of files in several extents
      reads-modes            files read for hours, buffered and direct
      reads-temporal-time    all reads are slow for a while, every 130 minutes
      reads-temporal-writes  all reads are slow for a while, each time a number of bytes is written
      reads-permanent        a file becomes slow for good
      writers                1, 2 and 4 concurrent writers: traces, maps of files, counters
      tasks                  nodes whose slots wait between tasks, and the rhythm of a disk
      awkward                bundles of all that goes wrong
      papers                 a bundle for each experiment of the papers

    The bundle is in the tools' own formats; what its relations must hold is in BUNDLE/truth. The same seed gives the same bytes.
    """
    from lab.simulate import simulate

    say(f"Bundle: {simulate(scenario, out, seed, parameters)}; `drivetail lab ingest {out}` takes it in")


@lab.command("choose")
@click.argument("experiment")
@click.option("--config", metavar="CONFIG", help="Only this configuration.  [default: all]")
@click.option(
    "--floor", type=click.FloatRange(min=0), metavar="KB_PER_S", help="Throughput that must be reached (kB of 1,024 bytes a second)."
)
@click.option("--ceiling", type=click.FloatRange(min=0), metavar="US", help="Latency of a write that must not be exceeded (microseconds).")
@click.option("--ceiling-p99", type=click.FloatRange(min=0), metavar="US", help="99th percentile that must not be exceeded (microseconds).")
@click.option("--conservative", is_flag=True, help="Hold the limits against the mean less, or plus, one standard deviation.")
@click.option(
    "--format", "output", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to print the choice."
)
@warehouse_option
def choose_buffer(
    warehouse: Warehouse,
    experiment: str,
    config: str | None,
    floor: float | None,
    ceiling: float | None,
    ceiling_p99: float | None,
    conservative: bool,
    output: str,
) -> None:
    """Choose the buffer size for synchronous writes.

    The smallest buffer that reaches --floor; the largest that keeps --ceiling and --ceiling-p99; the smallest that does all; without a
    limit the one with the most throughput per latency. `infeasible` where no buffer that was measured does.
    """
    from lab.ask.words import choices_table
    from lab.read import choose, published_lab

    with published_lab(warehouse) as connection:
        rows = choose(connection, experiment, config, floor, ceiling, ceiling_p99, is_conservative=conservative)
    pass_on(as_json(rows)) if output == "json" else say(choices_table(rows, has_p99=ceiling_p99 is not None))


@lab.command("report")
@click.argument("experiment", required=False, metavar="[EXPERIMENT|BUNDLE]")
@click.option("--against", metavar="EXPERIMENT", help="Show another experiment of the same kind beside it.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: DIR/reports/lab-EXPERIMENT.html]")
@warehouse_option
def write_report(warehouse: Warehouse, experiment: str | None, against: str | None, out: Path | None) -> None:
    """Write the page of an experiment as one HTML file.

    A BUNDLE, folder or archive, is taken in and built first.
    """
    from lab.pages.write import write_lab

    if experiment is not None and ((Path(experiment) / "experiment.toml").is_file() or Path(experiment).is_file()):
        experiment = _land(warehouse, Path(experiment)).experiment_id
        _build(warehouse)
    say(f"Report: {write_lab(warehouse, experiment, out, against)}")


@lab.command("compare")
@click.argument("sides", nargs=-1, required=True, metavar="A B")
@click.option("--experiment", metavar="EXPERIMENT", help="Experiment that has both.  [default: the only one]")
@format_option("How to print the comparison.")
@warehouse_option
def compare_configs(warehouse: Warehouse, sides: tuple[str, ...], experiment: str | None, output: str) -> None:
    """Compare two configurations, devices, phases, settings, or files.

    A setting is a factor and its value, such as scheduler=none. Every test that both have, with the difference, its 95% interval and a
    verdict, which may be inconclusive. Files of fio, iozone, mdtest, metarates or CSV need no warehouse: before/*.json after/*.json.
    """
    from lab.ask.words import compare, comparison_table
    from lab.read import published_lab

    if experiment is None and all(Path(side).exists() for side in sides):
        from lab.ask.files import compare_files

        rows = compare_files([Path(side) for side in sides])
    elif len(sides) != 2:
        raise Failure(f"{counted_noun(len(sides), 'name')} given; give two to compare, or files that exist")
    else:
        with published_lab(warehouse) as connection:
            rows = compare(connection, *sides, experiment)
    say_rows(output, rows, comparison_table)


@lab.command("study")
@format_option("How to print the numbers.")
@warehouse_option
def study_papers(warehouse: Warehouse, output: str) -> None:
    """Compare your experiments with the papers.

    Each number that a paper printed, what the experiments give, and a verdict: agrees, differs, no data or not comparable.
    """
    from lab.ask.study import printed_numbers, study_table
    from lab.read import published_lab

    with published_lab(warehouse) as connection:
        rows = printed_numbers(connection)
    say_rows(output, rows, study_table)


@lab.command("docs")
@click.option("--out", metavar="FILE", required=True, type=click.Path(dir_okay=False, path_type=Path), help="HTML file to write.")
def write_documentation(out: Path) -> None:
    """Write the documentation of the lab's tables as one HTML file.

    Every model with its columns, units, tests and lineage; `drivetail docs` has those of the fleet.
    """
    from drivetail.ask.docs import docs_of
    from lab.version import LAB

    with TemporaryDirectory() as folder:
        say(f"Documentation: {docs_of(LAB, Path(folder) / 'lab.duckdb', out)}")
