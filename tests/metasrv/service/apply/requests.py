"""Requests of `POST /v1/apply` and `GET /v1/export`."""

from typing import Any

import httpx

from tests.metasrv.api.rig import Server


def desired(*tables: dict[str, Any], schema: str = "public") -> dict[str, Any]:
    return {"catalogs": [{"name": "main", "schemas": [{"name": schema, "tables": list(tables)}]}]}


async def post(one: Server, state: Any = None, **more: Any) -> httpx.Response:
    wait = more.pop("wait", 60)
    body = {"desired": state or {}, "mode": "apply", **more}
    return await one.client.post("/v1/apply", json=body, headers={"prefer": f"wait={wait}"})


async def plan(one: Server, state: Any, **more: Any) -> dict[str, Any]:
    answer = await post(one, state, mode="plan", **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def applied(one: Server, state: Any, **more: Any) -> dict[str, Any]:
    answer = await post(one, state, **more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert (await plan(one, state, **more))["operations"] == []
    return found


async def exported(one: Server, **params: str) -> dict[str, Any]:
    answer = await one.client.get("/v1/export", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
