"""Requests for failover over HTTP."""

from typing import Any

from httpx import Response

from tests.metasrv.api.rig import Server


async def ask(
    one: Server, query: str = "", headers: dict[str, str] | None = None, **body: Any
) -> Response:
    return await one.client.post(
        f"/v1/failovers{query}", json={"reason": "test", **body}, headers=headers or {}
    )
