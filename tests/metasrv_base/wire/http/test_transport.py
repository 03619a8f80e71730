"""Connections that are reset as they are made, under the event loop of our programs."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
import uvloop

from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.http.client import HttpClient
from tests.metasrv_base.wire.http.http_server import Reply, serving

RESET = struct.pack("ii", 1, 0)  # as SO_LINGER: close sends RST
AT_ONCE, EACH = 60, 20


@contextmanager
def resetting() -> Iterator[str]:
    """A URL whose connections are reset the moment they are accepted."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(AT_ONCE)

        def reset_all() -> None:
            while True:
                try:
                    met, _ = listening.accept()
                except OSError:  # shut down: nobody asks any more
                    return
                met.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                met.close()

        thread = Thread(target=reset_all)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


async def outcomes(url: str) -> list[MetaError]:
    async def ask(client: HttpClient) -> list[MetaError]:
        found = []
        for _ in range(EACH):
            try:
                await client.request("POST", "/x", json={}, deadline_ms=60_000)
            except MetaError as error:
                found.append(error)
        return found

    async with HttpClient([url]) as client:
        met = await asyncio.gather(*(ask(client) for _ in range(AT_ONCE)))
    return [error for errors in met for error in errors]


def test_given_connections_that_are_reset_at_once_when_asked_then_each_failure_is_one_of_ours() -> (
    None
):
    with resetting() as url, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(outcomes(url))

    assert len(found) == AT_ONCE * EACH
    assert {type(error) for error in found} <= {Unavailable, Unknown}


@pytest.mark.case("input 90")
async def test_given_an_address_that_no_program_has_when_connected_then_nothing_is_sent() -> None:
    """IPv4 in the clothes of IPv6 leads to the server as a name would that was made to."""
    async with serving(Reply(200, {})) as server:
        url = server.url.replace("127.0.0.1", "[::ffff:127.0.0.1]")
        async with HttpClient([url]) as client:
            with pytest.raises(Unavailable):
                await client.request("POST", "/x", json={}, deadline_ms=60_000)

        assert server.asked == []
