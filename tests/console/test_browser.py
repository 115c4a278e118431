"""The console in Chromium: SRE, analyst and signer do their work, every control is pressed, and no request leaves the server."""

from __future__ import annotations

import multiprocessing
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hostile import GROUP, MODEL, SLOW

from console.ask import SECONDS
from tests.console.conftest import TOKEN, Served
from tests.console.test_console import ALL_PAGES, DRIVE, HOST, decided

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("console")]


@contextmanager
def reader(browser: Any, console: Served, width: int = 1400) -> Iterator[Any]:
    """A signed-in browser page; afterwards: nothing was asked of another server, no console error, no dialog."""
    context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True)
    page = context.new_page()
    troubles: list[str] = []
    page.on("request", lambda asked: None if asked.url.startswith((console.address, "data:", "blob:")) else troubles.append(asked.url))
    page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.goto(f"{console.address}/?token={TOKEN}")
    assert "token" not in page.url
    yield page
    context.close()
    assert troubles == []


@pytest.mark.proof
def test_a_newcomer_decides_three_minutes_after_the_first_of_two_commands(browser: Any, tmp_path: Path):
    began, command = time.monotonic(), [sys.executable, "-m", "drivetail"]
    subprocess.run([*command, "demo", "--out", tmp_path / "demo"], check=True, stdout=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    serve = [*command, "serve", "-w", tmp_path / "demo" / "warehouse", "--port", port]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server, ExitStack() as stack:
        stack.callback(server.terminate)  # else a page that fails waits for the server's end
        assert server.stdout is not None
        address, page = server.stdout.readline().strip(), browser.new_page()
        assert server.stdout.readline() == "Ctrl-C ends it.\n"
        page.goto(address)
        page.locator(".digest a").first.click()
        page.locator("#decide input[name=note]").fill("slow since Monday")
        page.locator("#decide").get_by_role("button", name="replace").click()
        assert "replace recorded for 1 drive" in page.get_by_role("status").inner_text()
    assert time.monotonic() - began < 180


def test_an_sre_goes_from_the_fleet_to_the_raw_row(browser: Any, console: Served):
    with reader(browser, console) as page:
        page.locator(".digest a").first.click()
        assert page.locator("dl.facts dt").first.inner_text() == "Host"
        page.locator("#hours .main-svg").first.wait_for()
        page.get_by_role("link", name="4 weeks").click()
        page.get_by_role("link", name="week", exact=True).click()
        page.locator("#span input[name=since]").fill("2026-01-28T00:00")
        page.get_by_role("button", name="Show").click()
        page.locator("#span_hours summary").click()
        page.get_by_role("link", name="Show its rows").click()
        page.locator("#span_hours tbody a[href^='/hour']").first.click()
        assert "Raw record" in page.locator("pre").inner_text()
        page.locator("input[name=q]").fill(f"{HOST}/2")
        page.get_by_role("button", name="Search").click()
        assert page.locator("h1").inner_text() == f"{HOST} slot 2"
        page.locator("dl.facts a").first.click()
        page.locator("#map .main-svg").first.wait_for()


def test_an_analyst_asks_and_keeps_the_answer(browser: Any, console: Served):
    with reader(browser, console) as page:
        page.get_by_role("link", name="Ask", exact=True).click()
        assert page.locator("#questions a").count() >= 29
        page.get_by_role("link", name="3. How often is a drive slow, by kind?").click()
        assert page.locator("#answer tbody tr").count() >= 2
        page.locator("textarea").fill("select kind, count(*) as n from marts.fct_raid_hours group by kind")
        page.get_by_role("button", name="Run, as a chart").click()
        page.locator("#answer .main-svg").first.wait_for()
        with page.expect_download() as kept:
            page.locator("#answer").get_by_role("link", name="CSV").click()
        assert kept.value.suggested_filename == "answer.csv"
        page.get_by_text("marts.dim_drives", exact=True).click()
        page.locator("aside details[open]").get_by_role("link", name="Rows").click()
        page.get_by_role("columnheader", name="slot").get_by_role("link").click()
        page.locator("#rows input[placeholder=filter]").fill(HOST)
        page.locator("#rows").get_by_role("button", name="Filter").click()
        with page.expect_download() as kept:
            page.locator("#rows").get_by_role("link", name="Parquet").click()
        assert kept.value.suggested_filename == "rows.parquet"


def test_a_question_is_cancelled_by_its_button(browser: Any, console: Served):
    with reader(browser, console) as page:
        page.goto(f"{console.address}/ask")
        page.locator("textarea").fill("select count(*) from range(10000000) a, range(10000000) b where a.range * b.range % 7 = 3")
        # from within the page: the driver itself would wait for the answer
        press = "setTimeout(() => document.querySelector('%s').click(), %d)"
        page.evaluate("() => {" + press % ("button[value=table]", 0) + ";" + press % ("button[name=edit]", 900) + "}")
        began = time.monotonic()
        while "edit=1" not in page.url and time.monotonic() - began < SECONDS:  # the navigation that was given up fails a wait for one
            page.wait_for_timeout(200)
        assert "range(10000000)" in page.locator("textarea").input_value()
        while multiprocessing.active_children():  # its process has been ended
            page.wait_for_timeout(100)
            assert time.monotonic() - began < SECONDS / 2


def test_a_signer_decides_on_several_drives_beside_the_evidence(browser: Any, console: Served):
    with reader(browser, console) as page:
        page.get_by_role("link", name="Candidates", exact=True).click()
        page.get_by_role("button", name="watch").first.click()
        assert "/candidates" in page.url, "no drive is ticked, and no note given"
        boxes = page.locator("#candidates input[type=checkbox]")
        chosen = [boxes.nth(number).get_attribute("value") for number in (4, 5)]
        boxes.nth(4).check()
        boxes.nth(5).check()
        page.locator("#candidates input[name=note]").fill("slow for weeks")
        page.locator("#candidates input[name=ticket]").fill("OPS-4713")
        page.locator("#candidates").get_by_role("button", name="replace").click()
        assert "replace recorded for 2 drives, by ada" in page.get_by_role("status").inner_text()
    assert [record["drive_id"] for record in decided(console.warehouse) if record["ticket"] == "OPS-4713"] == chosen


@pytest.mark.parametrize("width", [1400, 390])
def test_every_page_opens_folds_and_fits(browser: Any, console: Served, width: int):
    with reader(browser, console, width) as page:
        for address in ALL_PAGES:
            page.goto(console.address + address)
            for summary in page.locator("main > section > details > summary").all():
                summary.click()
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), address
            assert page.locator("[role=img] :is(a, button, [tabindex])").count() == 0, (
                f"{address}: what is read as one picture has no parts"
            )


def test_pages_without_javascript_have_their_tables_and_forms(browser: Any, console: Served):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{console.address}/?token={TOKEN}")
    page.goto(f"{console.address}/drive?id={DRIVE}")
    assert page.locator("#slow tbody tr").count() > 3
    page.locator("#decide input[name=note]").fill("without scripts")
    page.get_by_role("button", name="watch").first.click()
    assert "watch recorded" in page.get_by_role("status").inner_text()
    context.close()


def test_hostile_names_are_text_on_every_page_and_can_be_decided_on(browser: Any, hostile_console: Served):
    with reader(browser, hostile_console) as page:
        for address in (
            "/", f"/drive?id={quote(SLOW)}", f"/hour?id={quote(SLOW)}&at=2026-01-05 07:00", f"/group?id={quote(GROUP)}",
            f"/model?id={quote(MODEL)}", "/alerts", "/candidates", f"/search?q={quote('<')}", "/table?name=marts.dim_drives",
            f"/ask?sql={quote('select drive_id, model, 1 as n from marts.dim_drives')}&as=chart",
        ):  # fmt: skip
            page.goto(hostile_console.address + address)
            page.wait_for_timeout(300)
            assert page.locator("h1").inner_text() != "Not shown", address
            assert page.locator("main img, main svg[onload], b[onmouseover], a[href^='javascript:']").count() == 0, address
        page.goto(f"{hostile_console.address}/drive?id={quote(SLOW)}")
        assert page.locator("h1").inner_text() == SLOW
        page.locator("#decide input[name=note]").fill("<script>alert(8)</script>")
        page.locator("#decide").get_by_role("button", name="dismiss").click()
        assert "dismiss recorded for 1 drive" in page.get_by_role("status").inner_text()
    assert decided(hostile_console.warehouse)[-1]["drive_id"] == SLOW
