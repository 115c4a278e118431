"""Fixtures and hooks of all tests."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from shutil import which
from typing import Any

import duckdb
import pytest

from engine.execute import configure
from ingest.worker import Worker
from tests.needs import missing, require

LONGEST = ("spark", "lab", "proof", "study", "report", "console", "models", "safety", "drivetail")
"""Folders whose tests take minutes, the longest first: the processes of a run then end at about the same time."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, all else as it was collected."""
    items.sort(key=lambda item: next((place for place, folder in enumerate(LONGEST) if folder in item.path.parts), len(LONGEST)))


CALL = Worker.call


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are processes of their own, as they are in a command."""
    monkeypatch.setattr(Worker, "call", CALL)


@pytest.fixture(scope="session", autouse=True)
def no_worker() -> Iterator[None]:
    """The work of a worker is done in this process, of which tests change parts; commands that are started have workers."""

    def call(self: Worker, function: Any, *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "call", call)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """A build in this process has one thread: others run beside it, and days this small only cost more in several."""

    def configure_for_one(connection: duckdb.DuckDBPyConnection) -> None:
        configure(connection)
        connection.execute("set threads = 1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engine.opening.configure", configure_for_one)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all pages: a process can start Playwright once."""
    require("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a program that is not here."""
    for mark in item.iter_markers("needs"):
        require(*mark.args)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """End with a line that names missing programs."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        line = missing(str(report.longrepr) for report in reporter.stats.get("skipped", ()))
        if line:
            reporter.write_line(line)
