"""kill -9 at any instant of `drivetail lab`: run again, and what is published is that of an undisturbed run.

Each of the four phases is killed as often as one of the fleet's commands (tests/proof/test_killed.py).
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from engine.read import open_published
from engine.warehouse import Warehouse
from lab.build import build_lab
from lab.generations import Generation, latest_generation
from lab.landing import ingest_bundle, list_experiments
from lab.simulate import simulate
from tests.proof.test_killed import ATTEMPTS, ROUNDS, Killer


@pytest.mark.soak
@pytest.mark.xdist_group("killed-1")
def test_a_killed_lab_ingest_or_build_changes_no_answer_and_can_be_rerun(tmp_path: Path) -> None:
    """Killed while an experiment lands, while the models run, while what they made is kept, and in the swap; then run to the end."""
    killer = Killer(tmp_path, random.Random(int(os.environ.get("DRIVETAIL_KILL_SEED", "0")) or None))
    site, build, forks = Warehouse(killer.warehouse), ("lab", "build", *killer.option), killer.forks
    bundles = [
        simulate(scenario, tmp_path / f"e{number}", number, experiment_id=f"e{number}", runs=2, is_awkward=True)
        for number, scenario in zip(range(2 + ROUNDS + ATTEMPTS), cycle(["sync-writes", "before-after"]))
    ]
    ingests = [("lab", "ingest", bundle, *killer.option) for bundle in bundles]
    begun = time.monotonic()
    forks.run(*ingests[0])
    landing = time.monotonic() - begun
    forks.run(*build)
    forks.run(*ingests[1])
    taken = killer.seconds(build)
    steps = forks.run(*build, "e1")
    kept, swaps = killer.steps_around(steps["lab"], "os.link"), killer.steps_around(steps["swap"], "os.link", "os.rename")
    killed = dict.fromkeys(("landing", "models", "keeping", "swap"), 0)
    for number, ingest in enumerate(ingests[2:], 2):
        before, generation = shown(site), latest_generation(site)
        pid = forks.start(*ingest)
        time.sleep(killer.rng.random() * landing)
        with suppress(ProcessLookupError):  # it was through
            os.killpg(pid, signal.SIGKILL)
        if forks.finish()[0] == -signal.SIGKILL:
            killed["landing"] += 1
        else:
            landing /= 2  # the first one took longer than those that follow
        assert list_experiments(site.root).get(f"e{number}") in (None, 1)
        forks.run(*ingest)
        assert list_experiments(site.root)[f"e{number}"] == 1 and not any((site.root / "raw/.staging").iterdir())
        if not killer.kill(build, {"lab"}, taken["lab"]):
            forks.run(*build)  # it may have died later, or not at all
            taken["lab"] /= 2
            continue
        killed["models"] += 1
        killed["keeping"] += killer.kill_at_step(build, "lab", next(kept))
        assert shown(site) == before, "a build of the lab that was killed has changed what readers see"
        assert latest_generation(site) in (generation, latest_of(site, f"e{number}"))
        killed["swap"] += killer.kill_at_step(build, "swap", next(swaps))
        after = shown(site)
        forks.run(*build)
        assert shown(site) != before and after in (before, shown(site))
        if min(killed.values()) >= ROUNDS:
            break
    assert min(killed.values()) >= ROUNDS, killed
    # the same bundles land and are built undisturbed, in another order
    twin = Warehouse(tmp_path / "twin")
    for bundle in reversed(bundles[: number + 1]):
        ingest_bundle(twin.root, bundle)
    build_lab(twin)
    assert shown(site) == shown(twin)


def latest_of(warehouse: Warehouse, experiment_id: str) -> Generation | None:
    """The latest generation, if it holds an experiment whole; else none."""
    latest = latest_generation(warehouse)
    return latest if latest is not None and experiment_id in latest.experiments else None


def shown(warehouse: Warehouse) -> dict[str, list[str]]:
    """The rows of each relation of the lab that experiments are in, without the time at which they landed, as sorted text."""
    with open_published(warehouse) as connection:
        of_experiments = "select table_name from duckdb_columns() where schema_name = 'lab' and column_name = 'experiment_id' order by all"
        names = [name for (name,) in connection.execute(of_experiments).fetchall()]
        assert {"fct_bench_results", "fct_phase_cells", "fct_sync_write_points", "ingested_files"} <= set(names)
        query = "select columns(lambda name: name <> 'ingested_at') from lab.{}"
        return {name: sorted(map(repr, connection.execute(query.format(name)).fetchall())) for name in names}
