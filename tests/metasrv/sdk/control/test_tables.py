"""`if_exists` by the SDK, at a real server: what was not there is told, and is no error."""

import asyncio

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv_base.errors import NotFound
from tests.metasrv.api.rig import InProcess, Server, leader, spec


def _sdk(one: Server) -> AsyncClient:
    return AsyncClient([one.state.facts.url], transport=InProcess(one.app), patience_ms=1_000)


async def test_given_nothing_there_when_changed_if_it_exists_then_the_client_is_told_so() -> None:
    drop_carrier = [{"op": "drop_column", "name": "carrier"}]
    async with leader() as one, _sdk(one) as client:
        assert not await client.tables.drop("t", if_exists=True)
        assert await client.tables.rename("t", "u", if_exists=True) is None
        assert await client.tables.alter("t", drop_carrier, if_exists=True) is None
        assert not await client.indexes.drop("t", "i", if_exists=True)
        assert not await client.schemas.drop("s", if_exists=True)
        assert not await client.catalogs.drop("c", if_exists=True)
        assert one.version == 1
        with pytest.raises(NotFound):
            await client.tables.drop("t")


async def test_given_a_table_when_changed_if_it_exists_then_the_client_has_it() -> None:
    async with leader() as one, _sdk(one) as client:
        await client.tables.create(spec())

        renamed = await client.tables.rename("t", "u", if_exists=True)

        assert renamed is not None
        assert renamed.name == "u"
        assert await client.tables.drop("u", if_exists=True)
        assert not await client.tables.drop("u", if_exists=True)


async def test_given_changes_then_the_client_reads_their_history_and_the_difference() -> None:
    async with leader() as one, _sdk(one) as client:
        await client.tables.create(spec())
        before = one.version
        await client.tables.alter("t", [{"op": "drop_column", "name": "carrier"}])

        table = await client.tables.versions("t")
        each = await client.tables.versions("t", transitions=True)
        dropped = await client.catalogs.versions(operation="drop_column", catalog="main")
        diff = await client.tables.diff("t", before)

        assert [change.version for change in table] == [one.version, before]
        assert len(each) == one.version - before + 1
        assert [change.version for change in dropped] == [one.version]
        assert [operation.op for operation in diff.operations] == ["drop_column"]
        assert len(await client.catalogs.versions(1)) == 1


async def test_given_a_change_that_is_followed_when_its_table_goes_then_the_client_is_told() -> (
    None
):
    async with leader() as one, _sdk(one) as client:
        await client.tables.create(spec())

        dropped, renamed = await asyncio.gather(
            client.tables.drop("t"), client.tables.rename("t", "u", if_exists=True)
        )

        assert dropped
        assert renamed is None
