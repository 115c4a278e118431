"""Spark plans and compiles much here, over few rows: in few parts, by the compiler that is soon done.

`make proof` also leaves out what pays over many rows only: generated code, and plans that are made again while they run.
`make soak` has both.
"""

from __future__ import annotations

import os

JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:NewSize=400m -XX:MetaspaceSize=400m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)

SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "100",
    # no checksum and no mark of success beside each file: Hadoop starts a chmod for each
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
}

os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)
if "DRIVETAIL_FLEETS" in os.environ:  # of make soak
    os.environ.setdefault("DRIVETAIL_SPARK_PARTITIONS", "2")
else:
    os.environ.setdefault("DRIVETAIL_SPARK_PARTITIONS", "1")
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items()) + " pyspark-shell")
