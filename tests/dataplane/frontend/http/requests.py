"""Requests to the HTTP surface of a frontend in this process."""

from collections.abc import Sequence

import orjson

from dataplane.frontend.http.app import build_app
from tests.dataplane.frontend.bench import Bench
from tests.metasrv.api.raw import JSON, Got, Sent, send

ROWS = "/v1/tables/main/public/t/rows"


SCAN = "/v1/tables/main/public/t/scan"


CHECKSUM = "/v1/tables/main/public/t/checksum"


ARROW = "application/vnd.apache.arrow.stream"


async def get(bench: Bench, path: str, accept: str = "application/json") -> Got:
    return await send(build_app(bench.service), Sent("GET", path, {"accept": accept}))


async def post(bench: Bench, body: object, **headers: str) -> Got:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    sent = Sent("POST", ROWS, {**JSON, **headers}, [data])
    return await send(build_app(bench.service), sent)


async def stream(bench: Bench, parts: Sequence[bytes], path: str = f"{ROWS}?op=insert") -> Got:
    sent = Sent("POST", path, {"content-type": ARROW}, parts, chunked=True)
    return await send(build_app(bench.service), sent)
