"""A large body that is refused: common clients send all of it, and then see the answer."""

import asyncio
import shutil
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from metasrv_base.errors import MetaError
from metasrv_base.wire.http.asgi import Answering, Receive, Scope, Send, read_body
from serving.guard import Bounds
from tests.serving.sockets import PATIENCE_S, Heard, request, serving

LIMIT = 1 << 20
LARGE = 24 << 20
"""More than the buffers of both sockets hold."""


async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await read_body(receive, LIMIT)
    except MetaError as error:
        await Answering(send, "r").refuse(error, scope["path"])


def by_urllib(url: str) -> int:
    """urllib asks for the connection to be closed."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return int(opener.open(url, data=bytes(LARGE), timeout=PATIENCE_S).status)
    except urllib.error.HTTPError as answer:
        return answer.code


async def test_given_urllib_when_its_body_is_refused_then_it_sees_413() -> None:
    async with serving(Bounds(), refusing) as port:
        assert await asyncio.to_thread(by_urllib, f"http://127.0.0.1:{port}/x") == 413


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
async def test_given_curl_when_its_body_is_refused_then_it_sees_413(
    chunked: bool, tmp_path: Path
) -> None:
    (tmp_path / "large").write_bytes(bytes(LARGE))
    headers = ["-H", "Expect:", *(["-H", "Transfer-Encoding: chunked"] if chunked else [])]
    async with serving(Bounds(), refusing) as port:
        curl = await asyncio.create_subprocess_exec(
            *["curl", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", *headers],
            *["-H", "Connection: close", "--data-binary", f"@{tmp_path}/large"],
            f"http://127.0.0.1:{port}/x",
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await curl.communicate()

    assert said == b"413"


@pytest.mark.parametrize(
    "bounds", [Bounds(leftover_bytes=2 << 20), Bounds(leftover_ms=40)], ids=["bytes", "time"]
)
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
async def test_given_a_rest_beyond_the_bounds_when_refused_then_the_connection_ends(
    bounds: Bounds, connection: str
) -> None:
    async with serving(bounds, refusing) as port, asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        size = f"Content-Length: {1 << 40}"
        head = ("Host: 127.0.0.1", size, f"Connection: {connection}")
        writer.write(request("POST /x HTTP/1.1", *head))
        is_slow = bounds.leftover_ms < 1_000
        writer.write(bytes(2 * LIMIT))
        with suppress(ConnectionError):
            while not is_slow:
                writer.write(bytes(LIMIT))
                await writer.drain()
        heard = b""
        with suppress(ConnectionError):
            while part := await reader.read(4_096):
                heard += part
        writer.close()

    assert Heard(heard).statuses in ([413], [])  # a sender that goes on may lose the answer
    assert not is_slow or Heard(heard).statuses == [413]
