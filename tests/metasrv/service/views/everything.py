"""A server whose catalog has a bit of everything, and how its views are read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"Prefer": "wait=10"}
VIEWS = "/v1/information-schema"


async def done(one: Server, method: str, path: str, body: object = None) -> Any:
    answer = await one.client.request(method, path, json=body, headers=WAIT)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


@asynccontextmanager
async def everything() -> AsyncIterator[Server]:
    """Two catalogs, three schemas, tables of each sort, dropped ones, a placement, a tablespace."""
    async with leader() as one:
        await done(one, "POST", "/v1/catalogs", {"name": "acme", "limits": {"tables": 9}})
        await done(one, "POST", "/v1/catalogs/main/schemas", {"name": "sales"})
        await done(one, "POST", "/v1/placements", {"name": "fast", "comment": "quick"})
        await done(one, "POST", "/v1/catalogs/main/tablespaces", {"name": "near"})
        await one.make("plain", options={"comment": "nothing special"})
        await one.make("bare")
        bounds = {"by": "range", "columns": ["id"], "bounds": [[10], [20]]}
        columns = [
            *spec()["columns"],
            {"name": "price", "type": "decimal(10,2)", "default": "1.50"},
            {"name": "at", "type": "timestamp(ms)"},
        ]
        await one.make("ranged", partition=bounds, columns=columns, placement="fast")
        hashed = {"by": "hash", "columns": ["id"], "count": 4}
        sales = "/v1/catalogs/main/schemas/sales/tables"
        await done(one, "POST", sales, spec("hashed", partition=hashed, tablespace="near"))
        await done(one, "POST", "/v1/catalogs/acme/schemas/public/tables", spec("plain"))
        check = {"op": "add_constraint", "name": "small", "check": "id < 100", "not_valid": True}
        await done(one, "POST", f"{TABLES}/bare/alter", {"operations": [check]})
        for name in ("gone", "gone"):
            await one.make(name)
            await done(one, "DELETE", f"{TABLES}/{name}")
        yield one


async def page(one: Server, view: str, **query: str | int) -> dict[str, Any]:
    answer = await one.client.get(f"{VIEWS}/{view}", params=query)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def rows(one: Server, view: str, **query: str | int) -> list[dict[str, Any]]:
    """All rows, page by page, by the names of their columns."""
    found: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    while True:
        body = await page(one, view, **query, **token)
        found += (dict(zip(body["columns"], row, strict=True)) for row in body["rows"])
        if body["next_page_token"] is None:
            return found
        token = {"page_token": body["next_page_token"]}


async def all_tables(one: Server) -> list[dict[str, Any]]:
    """Living tables as the routes of the catalog show them, by name."""
    found: list[dict[str, Any]] = []
    for catalog in (await one.client.get("/v1/catalogs")).json()["catalogs"]:
        base = f"/v1/catalogs/{catalog['name']}/schemas"
        for schema in (await one.client.get(base)).json()["schemas"]:
            path = f"{base}/{schema['name']}/tables"
            names = [table["name"] for table in (await one.client.get(path)).json()["tables"]]
            found += [(await one.client.get(f"{path}/{name}")).json() for name in names]
    return found
