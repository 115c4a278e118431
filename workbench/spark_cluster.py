"""`make spark-cluster`: a Spark cluster on this machine, to try `--master` and to test what happens when a worker is lost.

A master and two workers of one core each: processes of their own that listen at 127.0.0.1 only. `make spark-cluster-stop` ends them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from workbench.commit import ROOT

HOST = "127.0.0.1"
FOLDER = ROOT / "target/spark-cluster"
WORKERS = 2
START_SECONDS = 120
DAEMONS = "org.apache.spark.deploy."


class Cluster:
    """A running cluster. Its folder has a log per process, and their ids in `pids`, the master's first."""

    def __init__(self, folder: Path, port: int = 0, worker_memory: str = "1500m") -> None:
        """Start the master and the workers and wait for both. port: the master's, 0 for a free one. Raises: RuntimeError."""
        self.folder, self.worker_memory = folder, worker_memory
        folder.mkdir(parents=True, exist_ok=True)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.master_log = folder / "master.log"
        self._start("master", "master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0")
        self.url = self._wait(rf"spark://{HOST}:\d+")[0]
        for _ in range(WORKERS):
            self.add_worker()

    def add_worker(self) -> None:
        """Start one more worker and wait until the master knows it."""
        known = len(self._registered())
        place = self.folder / f"worker-{known + 1}"
        options = ("--host", HOST, "--cores", "1", "--memory", self.worker_memory, "--webui-port", "0", "--work-dir", str(place))
        self._start(place.name, "worker.Worker", *options, self.url)
        self._wait("Registering worker", known + 1)

    def kill_worker(self) -> None:
        """Kill -9 the worker that was started last, with the executors it runs."""
        process = self.processes.pop()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End every process of the cluster."""
        for process in self.processes:
            _end(process.pid)
            process.wait()
        (self.folder / "pids").unlink(missing_ok=True)

    def _start(self, name: str, daemon: str, *arguments: str) -> None:
        specification = importlib.util.find_spec("pyspark")
        if specification is None or specification.origin is None:
            raise RuntimeError("a cluster needs pyspark: `make .venv/.spark`")
        home = Path(specification.origin).parent
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "DRIVETAIL_"))}
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [home / "bin/spark-class", f"{DAEMONS}{daemon}", *arguments],
                env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self.processes.append(process)
        (self.folder / "pids").write_text("".join(f"{process.pid}\n" for process in self.processes), encoding="utf-8")

    def _registered(self) -> list[str]:
        return re.findall("Registering worker", self.master_log.read_text(encoding="utf-8"))

    def _wait(self, what: str, count: int = 1) -> list[str]:
        """Wait until the master's log has a text a number of times."""
        deadline = time.monotonic() + START_SECONDS
        while len(found := re.findall(what, self.master_log.read_text(encoding="utf-8"))) < count:
            if self.processes[-1].poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the cluster does not start; see {self.folder}/*.log")
            time.sleep(0.2)
        return found


def _end(pid: int) -> None:
    """End a process group of a cluster, unless its id belongs to another process by now."""
    try:
        if DAEMONS in Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"):
            os.killpg(pid, signal.SIGTERM)
    except (FileNotFoundError, ProcessLookupError):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=7077, help="of the master")
    parser.add_argument("--stop", action="store_true", help="end the cluster that this command started")
    options = parser.parse_args()
    pids = FOLDER / "pids"
    for pid in pids.read_text(encoding="utf-8").split() if pids.exists() else []:
        _end(int(pid))
    pids.unlink(missing_ok=True)
    if options.stop:
        return
    try:
        cluster = Cluster(FOLDER, options.port)
    except RuntimeError as error:
        sys.exit(f"spark-cluster: {error}")
    print(f"{cluster.url} has {WORKERS} workers; logs in {FOLDER}; `make spark-cluster-stop` ends it")


if __name__ == "__main__":
    main()
