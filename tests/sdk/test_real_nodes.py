"""The SDK against real datanodes: rows there and back, a load, and a killed leader."""

import asyncio
import signal
from collections.abc import Iterator

import pyarrow as pa
import pytest

from base.errors import Conflict, Refused
from metasrv.sdk.client import AsyncClient
from tests.sdk.catalog import URL, FakeCatalog
from tests.sdk.cluster import RealNodes, root_of
from tests.sdk.samples import EMPTY, ROW, small, spec

pytestmark = pytest.mark.process


async def test_given_rows_of_every_type_when_written_then_they_are_read_as_they_were(
    three_nodes: RealNodes,
) -> None:
    catalog = FakeCatalog()
    three_nodes.create(catalog, spec(regions=4))

    async with AsyncClient([URL], transport=catalog) as client:
        table = client.table("t")
        await table.insert([ROW, EMPTY])
        with pytest.raises(Conflict) as taken:
            await table.insert([{**ROW, "text": "other"}])
        await table.upsert([{**EMPTY, "text": "newer"}])
        one, none = await table.get((1, "a")), await table.get((1, "b"))
        rows = (await table.to_arrow()).sort_by("id")
        parts = [part async for part in table.scan(["text", "id"], from_=2)]
        deleted = await table.delete([(1, "a"), (9, "never")])
        left = await table.count()

    assert one == ROW
    assert none is None
    assert taken.value.facts["keys"] == [{"id": 1, "part": "a"}]
    assert rows.column("text").to_pylist() == [ROW["text"], "newer"]
    assert [part.to_pylist() for part in parts if part.num_rows] == [[{"text": "newer", "id": 2}]]
    assert (deleted.rows, left) == (2, 1)


async def test_given_many_rows_when_loaded_then_all_are_there_once_and_the_last_of_a_key_stays(
    three_nodes: RealNodes,
) -> None:
    catalog = FakeCatalog()
    three_nodes.create(catalog, small(regions=6))
    first = pa.table({"id": range(60_000), "note": ["old"] * 60_000})
    again = pa.table({"id": range(0, 60_000, 2), "note": ["new"] * 30_000})
    told: list[int] = []

    async with AsyncClient([URL], transport=catalog) as client:
        table = client.table("t")
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
    three_nodes: RealNodes,
) -> None:
    catalog = FakeCatalog()
    three_nodes.create(catalog, small(regions=2))
    good = pa.record_batch({"id": range(5_000), "note": ["x"] * 5_000})

    def damaged() -> Iterator[pa.RecordBatch]:
        yield good
        raise pa.ArrowInvalid("invalid value 'bad'")

    async with AsyncClient([URL], transport=catalog) as client:
        table = client.table("t")
        with pytest.raises(Refused) as stopped:
            await table.load(damaged(), 500)

        assert stopped.value.facts["rows"] == await table.count()


async def test_given_a_killed_leader_under_a_writer_then_no_acknowledged_row_is_lost(
    three_nodes: RealNodes,
) -> None:
    catalog = FakeCatalog()
    three_nodes.create(catalog, small())
    assert catalog.table is not None
    (route,) = catalog.table.regions
    old, new = three_nodes.nodes[0], three_nodes.nodes[1]

    async with AsyncClient([URL], transport=catalog) as client:
        table = client.table("t")
        await table.insert([{"id": id} for id in range(100)])
        three_nodes.processes[0].send(signal.SIGKILL)
        writing = table.insert([{"id": 100}])
        opened = route.model_copy(update={"epoch": 2, "address": new.url})
        borrow = root_of(old.root, route)

        def fail_over() -> None:
            assert catalog.table is not None
            three_nodes.open(catalog.table, opened, new, borrow)
            catalog.move(0, epoch=2, address=new.url, borrows=(borrow,))

        result, _ = await asyncio.gather(writing, asyncio.to_thread(fail_over))
        count = await table.count()

    assert result.rows == 1
    assert count == 101
