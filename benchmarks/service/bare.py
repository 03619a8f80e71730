"""`benchmarks.service.bare BODY`: one FastAPI route that answers the bytes of a file.

What the framework and its server cost by themselves: the same path and parameters as `GET T`, no
model, no validation. It prints its address.
"""

import argparse
import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
import uvloop
from fastapi import FastAPI, Response

from metasrv.api.catalog.tables import TABLE


@asynccontextmanager
async def child_server(module: str, *arguments: str) -> AsyncIterator[tuple[str, int]]:
    """The address and the process id of a *module* that prints its address once it listens."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        yield (await child.stdout.readline()).decode().strip(), child.pid
    finally:
        child.terminate()
        await child.wait()


def bare_app(body: bytes) -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.get("/v1" + TABLE)
    async def get_table(catalog: str, schema: str, table: str) -> Response:
        return Response(body, media_type="application/json")

    return app


async def main(body: bytes) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(bare_app(body), log_config=None, access_log=False, lifespan="off")
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("body", type=Path)
    content = parser.parse_args().body.read_bytes()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(content))
