"""Shared by the tests of HTML pages: the page as text, and the page in a browser that has no network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any


class Page(HTMLParser):
    """A page as a test reads it without a browser."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.scripts: list[str] = []
        self._open = ""
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.words += data

    def metrics(self) -> dict[str, str | None]:
        return {str(attrs["data-metric"]): attrs.get("data-value") for _, attrs in self.tags if "data-metric" in attrs}


def check_accessible(page: Page) -> None:
    """The page has what screen readers need."""
    assert dict(page.tags)["html"]["lang"] == "en"
    named = [attrs for _, attrs in page.tags if "tabindex" in attrs or attrs.get("class") == "plotly-graph-div"]
    assert named and all(attrs.get("role") in ("group", "region") and attrs.get("aria-label") for attrs in named)
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def opened(browser: Any, path: Path, width: int = 1180, scheme: str = "light") -> tuple[Any, list[str]]:
    """The page in an offline browser, and everything it complained about or asked the world for."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_offline(True)
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}") if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: None if request.url == path.as_uri() else troubles.append(f"request: {request.url}"))
    page.goto(path.as_uri(), wait_until="load")
    # figures are drawn when somebody comes near them
    page.evaluate("drawAll()")
    page.wait_for_timeout(300)
    return page, troubles
