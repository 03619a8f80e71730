"""Requests of /v1/sql to a frontend in this process."""

from typing import Any

import orjson

from dataplane.frontend.http.app import build_app
from metasrv_base.wire.language.row_sql import RowSqlBody
from tests.dataplane.frontend.bench import Bench
from tests.metasrv.api.raw import JSON, Got, Sent, send


async def sent(bench: Bench, text: str, headers: dict[str, str] | None = None, **more: Any) -> Got:
    data = orjson.dumps({"text": text, **more})
    request = Sent("POST", "/v1/sql", {**JSON, **(headers or {})}, [data])
    return await send(build_app(bench.service), request)


async def done(bench: Bench, text: str, **more: Any) -> RowSqlBody:
    got = await sent(bench, text, **more)
    assert got.status == 200, got.body.decode()
    return RowSqlBody.model_validate_json(got.body)


async def rows(bench: Bench, text: str) -> list[tuple[Any, ...]]:
    """The rows of the last statement."""
    return list((await done(bench, text)).results[-1].rows)


async def refused(bench: Bench, text: str) -> dict[str, Any]:
    """The facts of a refusal, and its code and status."""
    got = await sent(bench, text)
    assert got.status >= 400, got.body.decode()
    return {"code": got.json["code"], "status": got.status, **got.json["facts"]}
