"""Batches as a client sends them."""

from typing import Any

import httpx

from tests.metasrv.api.rig import TABLES, Server, spec

WAIT = {"prefer": "wait=10"}
IN_PUBLIC = {"catalog": "main", "schema": "public"}


async def batch(
    one: Server, *commands: dict[str, Any], headers: dict[str, str] | None = None, query: str = ""
) -> httpx.Response:
    body = {"commands": list(commands)}
    return await one.client.post(f"/v1/batch{query}", json=body, headers=headers or WAIT)


def create(name: str, schema: str = "public", **more: Any) -> dict[str, Any]:
    return {"create_table": {"catalog": "main", "schema": schema, "table": spec(name, **more)}}


def drop(name: str, **more: Any) -> dict[str, Any]:
    return {"drop_table": {**IN_PUBLIC, "table": name, **more}}


def rename(name: str, new_name: str, **more: Any) -> dict[str, Any]:
    return {"rename_table": {**IN_PUBLIC, "table": name, "new_name": new_name, **more}}


def comment(name: str, text: str) -> dict[str, Any]:
    operations = [{"op": "set_options", "options": {"comment": text}}]
    return {"alter_table": {**IN_PUBLIC, "table": name, "operations": operations}}


async def names(one: Server) -> dict[str, int]:
    listed = (await one.client.get(TABLES)).json()["tables"]
    return {table["name"]: table["id"] for table in listed}
