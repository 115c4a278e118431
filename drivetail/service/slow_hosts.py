"""The file of hosts with an open alert: the warehouse writes it (tell/slow_hosts.py), the hosts read it (host/fast_sampling.py)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

LEAST_SECONDS, MOST_SECONDS = 5, 300
"""How often a host looks while one of its drives has an open alert."""


class SlowHosts(BaseModel):
    """Since when each host has had its latest open alert; how often it looks for that, how many hours and how many megabytes long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every_seconds: Annotated[int, Field(ge=LEAST_SECONDS, le=MOST_SECONDS)]
    hours: Annotated[int, Field(ge=1)]
    megabytes: Annotated[int, Field(ge=1)]
    hosts: dict[str, AwareDatetime]


def seconds_of(text: str) -> int | None:
    """`60s`, `5m` -> seconds; null for another text."""
    match = re.fullmatch(r"(\d{1,4})([sm]?)", text)
    return int(match[1]) * (60 if match[2] == "m" else 1) if match else None
