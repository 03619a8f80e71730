"""A user's PySpark program: reads a table, and says whether it equals the scan."""

import json
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

from metasrv.sdk.connections import connect
from metasrv.sdk.spark import read_table


def main(url: str, name: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    frame = read_table(spark, name, url)
    found = pa.Table.from_batches(frame.toArrow().to_batches())
    chosen = read_table(spark, name, url, columns=["text", "id"]).orderBy("id").collect()
    with connect(url) as client:
        scanned = client.table(name).to_arrow()
    said = {
        "partitions": frame.rdd.getNumPartitions(),
        "rows": found.num_rows,
        "equal": [
            name
            for name in scanned.column_names
            if found.sort_by("id").column(name).to_pylist()
            == scanned.sort_by("id").column(name).cast(found.schema.field(name).type).to_pylist()
        ],
        "chosen": [list(row) for row in chosen],
    }
    spark.stop()
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
