"""Spark plans and compiles much here, over few rows: in few parts, by the compiler that is soon done."""

from __future__ import annotations

import os

os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC")
os.environ.setdefault("DRIVETAIL_SPARK_PARTITIONS", "2")
