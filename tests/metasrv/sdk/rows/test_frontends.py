"""Bounds of what a client keeps of the tables that it has used."""

import pytest

from metasrv.sdk.control.service import ControlService
from metasrv.sdk.rows import frontends
from metasrv.sdk.rows.frontends import Frontends
from metasrv_base.wire.http.client import HttpClient
from tests.fakes.chance import SeededRng


async def test_given_more_tables_than_are_kept_then_those_answered_last_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frontends, "TABLES_MAX", 2)
    async with HttpClient(["http://a:1"]) as http:
        service = ControlService(http, SeededRng(), patience_ms=1)
        client = Frontends(service, SeededRng())
        for table_id, version in ((1, 7), (2, 5), (1, 6), (3, 4)):
            client.heard(table_id, version)

        assert [client.newest(table_id) for table_id in (1, 2, 3)] == [7, 0, 4]
        await client.close()
