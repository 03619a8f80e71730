"""Views by the SDK, at a real server: pages that are one answer, and what is refused."""

import pytest

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.control import service
from metasrv_base.errors import NotFound, Refused
from tests.metasrv.api.rig import InProcess, Server
from tests.metasrv.service.views.everything import everything


def _sdk(one: Server) -> AsyncClient:
    return AsyncClient([one.state.facts.url], transport=InProcess(one.app), patience_ms=1_000)


async def test_given_a_view_then_all_its_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with everything() as one, _sdk(one) as client:
        whole = await client.show("columns")
        monkeypatch.setattr(service, "PAGE", 3)
        parts = await client.show("columns")
        pages = [page async for page in client.information_schema.pages("columns")]

        assert parts == whole
        assert len(pages) == -(-len(whole.rows) // 3) > 2
        assert whole.catalog_version == one.version
        assert whole.records()[0]["column_name"] == "id"


async def test_given_conditions_then_they_are_sent() -> None:
    async with everything() as one, _sdk(one) as client:
        names = await client.show(
            "tables", where="table_schema = 'public'", columns=("table_name",), limit=2
        )
        before = await client.show("tables", as_of="1")
        views = await client.information_schema.views()

        assert (names.columns, names.rows) == (("table_name",), (("plain",), ("bare",)))
        assert (before.rows, before.catalog_version) == ((), 1)
        assert {"tables", "locks"} <= {view.name for view in views}


async def test_given_what_there_is_not_then_what_comes_close_is_said() -> None:
    async with everything() as one, _sdk(one) as client:
        with pytest.raises(NotFound) as missing:
            await client.show("tabels")
        with pytest.raises(Refused) as unknown:
            await client.show("tables", where="verson = 1")

        assert missing.value.facts["did_you_mean"] == "tables"
        assert unknown.value.facts["did_you_mean"] == "version"
        assert unknown.value.facts["excerpt"] == "verson = 1\n^"
