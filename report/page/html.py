"""A page of drivetail as a file: one template, everything inside it, replaced in one step. All data are escaped by the template."""

from __future__ import annotations

import gzip
import re
import shlex
from base64 import b64encode
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from ingest.reading.text import in_order
from report.page import numbers
from report.page.cells import text
from report.words import milliseconds

REPORT = Path(__file__).parents[1]


def render(template: str, folder: Path = REPORT, **content: Any) -> str:
    """The whole HTML file of a template in a folder; what it extends and imports is named from there or from the folder `report`."""
    return environment(folder).get_template(template).render(plotly_js=plotly_js(), packed_tables_js=packed_tables_js(), **content)


def environment(folder: Path) -> jinja2.Environment:
    """The templates of a folder, then of the folder `report`, with the filters that write numbers."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, REPORT]),
        autoescape=True,
        finalize=in_order,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        cell=lambda value, column: text(column, value),
        count=numbers.count,
        percent=numbers.percent,
        ratio=numbers.ratio,
        hours=numbers.hours,
        times=numbers.times,
        whole=numbers.whole,
        tenths=numbers.tenths,
        milliseconds=milliseconds,
        capacity=numbers.capacity,
        shell=shlex.quote,
        instant=numbers.instant,
        day=numbers.day,
        kind=numbers.kind_name,
        plural=numbers.plural,
    )
    return found


@cache
def plotly_js() -> Markup:
    """plotly.js as it goes into a script element."""
    return Markup(get_plotlyjs().replace("</script", "<\\/script"))


@cache
def packed_tables_js() -> Markup:
    """DataTables and jQuery as the package itables brings them, a module that ends by handing jQuery to the page; packed to two fifths."""
    bundle = Path(str(distribution("itables").locate_file("itables/html/dt_bundle.js"))).read_text(encoding="utf-8")
    (name,) = re.findall(r"[{,](\w+) as jQuery[,}]", bundle)
    # without a time, so that the same numbers make the same page
    return Markup(b64encode(gzip.compress(f"{bundle}\nwindow.sortTables({name});".encode(), mtime=0)).decode())
