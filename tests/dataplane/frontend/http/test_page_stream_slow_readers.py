"""A reader of a frontend that stops receiving holds memory for its own answer, and is bounded.

Over real sockets; the frontend and its node are in this process.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import pytest

from benchmarks.load import request_of
from dataplane.frontend.http.app import build_app
from dataplane.frontend.planning.row_input import Op
from metasrv_base.concurrency.reservations import Reservations
from serving.guard import Bounds
from tests.dataplane.frontend.bench import T, running
from tests.dataplane.frontend.tables import A, B, feed_table
from tests.serving.sockets import PATIENCE_S, serving

ROW_BYTES = 100_000
ROWS = 100
ROOM = 15_000_000
"""For one answer with all rows, and some small ones."""
PATH = "/v1/tables/main/public/t"
FORMS = {
    "pages": (f"{PATH}/scan?limit={ROWS}", "application/json"),
    "streams": (f"{PATH}/scan", "application/vnd.apache.arrow.stream"),
}


@asynccontextmanager
async def stalled(port: int, path: str, accept: str) -> AsyncIterator[bytes]:
    """A reader that receives the first bytes of the answer, and then nothing. Gives the status."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 10)
        await loop.sock_connect(connection, ("127.0.0.1", port))
        await loop.sock_sendall(connection, request_of("GET", path, {"accept": accept}, b""))
        yield (await loop.sock_recv(connection, 64)).split(b" ", 2)[1]


@pytest.mark.parametrize("form", FORMS)
async def test_given_a_reader_that_receives_nothing_when_others_read_then_its_own_room_is_taken(
    form: str,
) -> None:
    path, accept = FORMS[form]
    async with running(feed_table(A, B, regions=1)) as bench:
        rows = [{"id": one, "a": one, "b": "x" * ROW_BYTES} for one in range(ROWS)]
        await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
        rooms = {name: Reservations(name, ROOM) for name in FORMS}
        room, pages, streams = rooms[form], rooms["pages"], rooms["streams"]
        service = replace(bench.service, pages=pages, streams=streams)
        async with (
            serving(Bounds(), build_app(service)) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http,
        ):
            async with stalled(port, path, accept) as status:
                assert status == b"200"
                assert room.bytes > ROWS * ROW_BYTES

                refused = await http.get(path, headers={"accept": accept})
                (other,) = set(FORMS) - {form}
                path_of_other, accept_of_other = FORMS[other]
                served = await http.get(path_of_other, headers={"accept": accept_of_other})

            assert refused.status_code == 503, refused.text
            assert refused.headers["retry-after"] == "1"
            assert f"memory for {form} is full" in refused.json()["facts"]["reason"]
            assert served.status_code == 200
            async with asyncio.timeout(PATIENCE_S):
                while (await http.get(path, headers={"accept": accept})).status_code != 200:
                    pass
