"""A long answer, part by part as it comes, from the first server that gives one."""

from collections.abc import AsyncGenerator

import httpx
import orjson

from metasrv_base.errors import Unavailable
from metasrv_base.wire.http.client import CONNECT_MS_MAX, HttpClient, unanswered
from metasrv_base.wire.http.transport import Transport
from metasrv_base.wire.problem.problems import error_of

SILENT_S = 30.0
"""Seconds for which a server may send nothing."""
PIECE_BYTES = 1 << 20
PROBLEM_BYTES_MAX = 1 << 20


async def download(
    client: HttpClient,
    path: str,
    transport: httpx.AsyncBaseTransport | None = None,
    silent_s: float = SILENT_S,
) -> AsyncGenerator[bytes, None]:
    """Yields the body of the answer to a POST of *path* that changes nothing. The servers are those
    of *client*; another one is asked only if nothing has come yet.

    Raises the error that the answer means, Unavailable if no server answered or one broke off.
    """
    last: Unavailable = Unavailable("not-ready", what="the service")
    for url in client.urls:
        is_begun = False
        try:
            async for part in _from(client, url, path, transport, silent_s):
                is_begun = True
                yield part
        except Unavailable as error:
            last = error
            if is_begun:
                break
        else:
            return
    raise last


async def _from(
    client: HttpClient,
    url: str,
    path: str,
    transport: httpx.AsyncBaseTransport | None,
    silent_s: float,
) -> AsyncGenerator[bytes, None]:
    headers = client.headers_for(url)
    limits = httpx.Timeout(silent_s, connect=CONNECT_MS_MAX / 1000)
    is_answered = False
    try:
        async with (
            httpx.AsyncClient(
                transport=transport or Transport(), trust_env=False, timeout=limits
            ) as http,
            http.stream("POST", url + path, headers=headers) as answer,
        ):
            is_answered = True
            if answer.status_code != 200:
                raise error_of(answer.status_code, await problem_in(answer))
            async for part in answer.aiter_raw(PIECE_BYTES):
                yield part
    except httpx.RequestError as error:
        if not is_answered:
            raise unanswered(url, error) from error
        reason = str(error) or type(error).__name__
        raise Unavailable("not-ready", what=url, reason=reason) from error


async def problem_in(answer: httpx.Response) -> object:
    """The body as JSON; None: it is none, or too long."""
    body = b""
    async for part in answer.aiter_raw(PIECE_BYTES):
        body += part
        if len(body) > PROBLEM_BYTES_MAX:
            return None
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
