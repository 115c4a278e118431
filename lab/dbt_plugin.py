"""The functions of lab/statistics.py for dbt's own connections (profiles.yml)."""

from __future__ import annotations

from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin

from lab.statistics import register


class Plugin(BasePlugin):  # type: ignore[misc]
    """Plugin that gives dbt the functions of the lab."""

    def configure_connection(self, conn: Any) -> None:
        """Register the functions on a connection."""
        register(conn)
