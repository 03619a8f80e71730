"""The SDK against a whole cluster: rows of every type there and back, and loads."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.connections import connect_async
from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.errors import Conflict, Refused
from metasrv_base.wire.api.tables import TableSpec
from tests.metasrv.sdk.samples import EMPTY, ROW, small, spec

pytestmark = pytest.mark.process


@asynccontextmanager
async def table_of(folder: Path, wanted: TableSpec) -> AsyncIterator[AsyncTable]:
    settings = PlaygroundOptions(folder, datanodes=2, frontends=1)
    async with (
        Playground(settings) as playground,
        connect_async(playground.metasrv_urls, patience_ms=60_000) as client,
    ):
        await client.tables.create(wanted)
        yield client.table("t")


async def test_given_rows_of_every_type_when_written_then_they_are_read_as_they_were(
    tmp_path: Path,
) -> None:
    async with table_of(tmp_path, spec(regions=4)) as table:
        await table.insert([ROW, EMPTY])
        with pytest.raises(Conflict) as taken:
            await table.insert([{**ROW, "text": "other"}])
        await table.upsert([{**EMPTY, "text": "newer"}])
        one, none = await table.get((1, "a")), await table.get((1, "b"))
        rows = (await table.to_arrow()).sort_by("id")
        parts = [part async for part in table.scan(["text", "id"], from_=2)]
        straight = [part async for part in table.scan_regions(await table.regions())]
        deleted = await table.delete([(1, "a"), (9, "never")])
        left = await table.count()

    assert one == ROW
    assert none is None
    assert taken.value.facts["keys"] == [{"id": 1, "part": "a"}]
    assert rows.column("text").to_pylist() == [ROW["text"], "newer"]
    assert [part.to_pylist() for part in parts if part.num_rows] == [[{"text": "newer", "id": 2}]]
    assert pa.Table.from_batches(straight).sort_by("id") == rows
    assert (deleted.rows, left) == (2, 1)


async def test_given_many_rows_when_loaded_then_all_are_there_once_and_the_last_of_a_key_stays(
    tmp_path: Path,
) -> None:
    first = pa.table({"id": range(60_000), "note": ["old"] * 60_000})
    again = pa.table({"id": range(0, 60_000, 2), "note": ["new"] * 30_000})
    told: list[int] = []

    async with table_of(tmp_path, small(regions=6)) as table:
        result = await table.load(pa.concat_tables([first, again]), 2_000, told.append)
        rows = (await table.to_arrow()).sort_by("id")
        digest = await table.checksum()
        with pytest.raises(Conflict) as stopped:
            await table.load(first, op="insert")

    assert rows.column("id").to_pylist() == list(range(60_000))
    assert set(rows.column("note")[::2].to_pylist()) == {"new"}
    assert set(rows.column("note")[1::2].to_pylist()) == {"old"}
    assert told == sorted(told)
    assert told[-1] == result.rows
    assert digest.rows == 60_000
    assert stopped.value.facts["rows"] == 0


async def test_given_a_row_that_cannot_be_read_then_told_how_many_were_loaded_before(
    tmp_path: Path,
) -> None:
    good = pa.record_batch({"id": range(5_000), "note": ["x"] * 5_000})

    def damaged() -> Iterator[pa.RecordBatch]:
        yield good
        raise pa.ArrowInvalid("invalid value 'bad'")

    async with table_of(tmp_path, small(regions=2)) as table:
        with pytest.raises(Refused) as stopped:
            await table.load(damaged(), 500)

        assert stopped.value.facts["rows"] == await table.count()
