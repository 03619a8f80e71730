"""`read_table` by real executors, from a whole cluster: equal to a scan, one partition a region."""

import asyncio
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from metasrv.host.toolchain import checkout, read_toolchain
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from metasrv.sdk.spark import as_planned, ddl_type
from metasrv_base.errors import Conflict, Refused
from tests.metasrv.sdk.samples import EMPTY, ROW, TYPES, spec


def read_by_spark(url: str) -> dict[str, Any]:
    toolchain = read_toolchain(checkout())
    assert toolchain is not None, "the bootstrap has not run: make setup"
    done = subprocess.run(
        [sys.executable, "-m", "tests.metasrv.sdk.spark_reader", url, "t"],
        env={**os.environ, **toolchain.environment(os.environ["PATH"])},
        cwd=checkout(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.spark
async def test_given_a_table_of_every_type_when_read_by_spark_then_it_equals_a_scan(
    tmp_path: Path,
) -> None:
    row = {**ROW, "nano": ROW["nano"] // 1_000 * 1_000}  # Spark has microseconds

    async with Playground(PlaygroundOptions(tmp_path, datanodes=2, frontends=1)) as playground:
        async with connect_async(playground.metasrv_urls) as client:
            await client.tables.create(spec(regions=3))
            await client.table("t").insert([row, EMPTY])
        found = await asyncio.to_thread(read_by_spark, playground.metasrv_urls[0])

    assert (found["partitions"], found["rows"]) == (3, 2)
    assert found["equal"] == ["id", "part", *TYPES]
    assert found["chosen"] == [[ROW["text"], 1], [None, 2]]


def test_given_a_decimal_that_has_more_places_since_it_was_planned_then_it_is_not_rounded() -> None:
    planned = pa.schema([pa.field("price", pa.decimal128(10, 2))])
    rows = pa.RecordBatch.from_pydict({"price": pa.array([Decimal("1.2399")])})
    same = pa.RecordBatch.from_pydict({"price": pa.array([Decimal("1.23")], pa.decimal128(10, 2))})

    with pytest.raises(Conflict, match="schema-version-stale"):
        as_planned(rows, planned)

    assert as_planned(same, planned) is same


def test_given_every_type_then_spark_has_a_name_for_it() -> None:
    named = {name: ddl_type(TYPES, name) for name in TYPES}

    assert named["price"] == "DECIMAL(10,2)"
    assert {named[one] for one in ("second", "milli", "micro", "nano")} == {"TIMESTAMP"}


def test_given_a_column_that_is_not_there_then_it_is_refused() -> None:
    with pytest.raises(Refused):
        ddl_type(TYPES, "wrong")
