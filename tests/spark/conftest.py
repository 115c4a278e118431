"""Spark starts and plans much here, over few rows."""

from __future__ import annotations

import os

# the compiler that takes long to make fast code costs twice what all queries do
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
