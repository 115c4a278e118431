"""Write the marts of a publication as Iceberg tables, read them back and compare: `python deploy/to_iceberg.py WAREHOUSE CATALOG_FOLDER`.

Needs pyspark 4.1.4, duckdb and pyarrow in an environment of its own, Java 17, and Maven Central for Iceberg's jar (docs/spark.md). In a
lake with a catalog of its own, change the settings of CATALOG.
"""

import os
import sys
import tempfile
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

warehouse, folder = (Path(argument).resolve() for argument in sys.argv[1:])
CATALOG = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": str(folder)}

builder = SparkSession.builder.master(os.environ.get("DRIVETAIL_SPARK_MASTER", "local[*]")).config("spark.ui.enabled", "false")
builder = builder.config("spark.jars.packages", RUNTIME).config("spark.sql.session.timeZone", "UTC")
for key, value in CATALOG.items():
    builder = builder.config(f"spark.sql.catalog.lake{key}", value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def count(rows: str) -> int:
    """Number of rows."""
    return published.execute(f"select count(*) from ({rows})").fetchall()[0][0]


published = duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True)
published.execute("set timezone = 'UTC'")
with tempfile.TemporaryDirectory() as scratch:
    for (mart,) in published.execute("select distinct table_name from duckdb_columns() where schema_name = 'marts' order by 1").fetchall():
        file = f"{scratch}/{mart}.parquet"
        published.execute(f"copy marts.{mart} to '{file}' (format parquet)")
        spark.read.parquet(file).writeTo(f"lake.marts.{mart}").using("iceberg").createOrReplace()
        published.register("in_lake", spark.table(f"lake.marts.{mart}").toArrow())
        missing, more = count(f"from '{file}' except all from in_lake"), count(f"from in_lake except all from '{file}'")
        rows = count(f"from '{file}'")
        published.unregister("in_lake")
        if missing or more:
            sys.exit(f"to_iceberg: {mart}: {missing} rows are not in the Iceberg table, {more} only there")
        print(f"lake.marts.{mart}: {rows} rows")
