"""`benchmarks.service.create_floor`: the least that a create over REST can cost in one process.

A bare route of the framework answers each POST when two transactions of etcd, one after the other,
are done: a submission and an end, by our own adapter and with the compares, puts and bytes of one
create. No procedure, no lock, no schema. A second route sends one order to a node between the two,
by our own client over a kept connection: all that the protocol of a create waits for. Another
answers at once: what is left if a create asked etcd for nothing, since many creates at a time share
transactions. Beside them etcd is driven raw by one transaction, as in `benchmarks.service.creates`.
"""

import argparse
import asyncio
import socket
import tempfile
from itertools import count, product
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
import uvloop
from fastapi import FastAPI, Response

from benchmarks.load import Load, closed_loop, request_of
from benchmarks.report import head, line, ratio
from benchmarks.service.bare import child_server
from benchmarks.service.creates import MANY, PATH, cpu_ms, stub_node
from benchmarks.service.raw import DEADLINE_MS, SETTINGS, Shape, Work, measured
from keys.store.etcd import EtcdKv
from keys.store.kv import Kv
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.wire.http.client import HttpClient

ROUNDS = 5
FLOOR = "benchmarks.service.create_floor"
NONE, ORDERED = "/none", "/ordered"
ROUTES = {"two transactions": PATH, "with an order": ORDERED, "none": NONE}
ORDER = {"number": 1, "region_id": "4398046511104", "epoch": 1, "root": "/dn-1/4398046511104-1"}
"""A part of the fields of a real one."""
COMPARES = 9
WHOLE = (420, 60, 300, 120, 50, 200, 60, 40)
"""Sizes of the values that one create puts: its submission's two, then its end's."""
SUBMISSION, END = Shape(4, WHOLE[:2]), Shape(5, WHOLE[2:])


def floor_app(kv: Kv, node: HttpClient) -> FastAPI:
    app, numbers = FastAPI(openapi_url=None), count()

    async def commit(name: str, shape: Shape) -> None:
        request = shape.request(f"floor/{name}")
        assert (await kv.txn(request, deadline_ms=DEADLINE_MS)).succeeded

    @app.post(PATH)
    async def create() -> Response:
        number = next(numbers)
        await commit(f"{number}/submission", SUBMISSION)
        await commit(f"{number}/end", END)
        return Response(b"{}", 201, media_type="application/json")

    @app.post(ORDERED)
    async def ordered() -> Response:
        number = next(numbers)
        await commit(f"{number}/submission", SUBMISSION)
        orders = {"orders": [ORDER]}
        await node.request("POST", "/node/v1/orders", json=orders, deadline_ms=DEADLINE_MS)
        await commit(f"{number}/end", END)
        return Response(b"{}", 201, media_type="application/json")

    @app.post(NONE)
    async def nothing() -> Response:
        return Response(b"{}", 201, media_type="application/json")

    return app


async def serve(endpoint: str, node: str) -> None:
    kv = await EtcdKv.connect([endpoint], b"bench/")
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        floor_app(kv, HttpClient([node])), log_config=None, access_log=False, lifespan="off"
    )
    await uvicorn.Server(config).serve(sockets=[listening])


async def posted(url: str, size: int, clients: int) -> Load:
    request = request_of("POST", urlsplit(url).path, {}, b"{}")
    return await closed_loop(url, lambda _: request, range(size), clients=clients, status=b"201")


def median_ms(load: Load) -> float:
    return sorted(load.latencies_ms)[len(load.latencies_ms) // 2]


async def measure(creates: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}

    def add(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        options = PlaygroundOptions(data_dir=Path(folder), datanodes=0)
        async with Playground(options) as up, stub_node(up.metasrv_urls, Path(folder)) as node:
            endpoint = up.etcd_urls[0].removeprefix("http://")
            async with child_server(FLOOR, "--serve", endpoint, node) as (url, pid):
                for number in range(ROUNDS):
                    for clients, (name, path) in product((1, MANY), ROUTES.items()):
                        size = creates * (1 if clients == 1 else 8)
                        before = cpu_ms(pid)
                        load = await posted(url + path, size, clients)
                        what = f"{name}, {clients} clients: "
                        add(what + "processor of the server", (cpu_ms(pid) - before) / size)
                        add(what + "rate", load.per_second)
                        add(what + "latency", median_ms(load))
                    shape = Shape(COMPARES, WHOLE)
                    one = Work(endpoint, shape, f"one{number}", 2 * creates, 1)
                    add("raw latency", median_ms(await measured(one, SETTINGS[0])))
                    rates = [
                        (await measured(work(endpoint, shape, number, creates, name), setting))
                        for name, setting in enumerate(SETTINGS)
                    ]
                    add("raw rate", max(load.per_second for load in rates))
    return found


def work(endpoint: str, shape: Shape, number: int, creates: int, setting: int) -> Work:
    return Work(endpoint, shape, f"many{number}-{setting}", MANY * creates, MANY)


def main(creates: int) -> None:
    found = asyncio.run(measure(creates))
    head(f"python -m benchmarks.service.create_floor --creates {creates}", ROUNDS)
    for name, values in found.items():
        line(name, values, "/s" if "rate" in name else "ms", 0 if "rate" in name else 2)
    for name in ROUTES:
        many, alone = f"{name}, {MANY} clients: rate", f"{name}, 1 clients: latency"
        ratio(f"{name}: rate at {MANY} clients / raw", found[many], found["raw rate"])
        ratio(f"{name}: latency at one client / raw", found[alone], found["raw latency"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.service.create_floor", description=__doc__)
    parser.add_argument("--creates", type=int, default=50, help="of one client in each round")
    parser.add_argument("--serve", nargs=2, metavar=("ETCD", "NODE"), help="be the server")
    said = parser.parse_args()
    if said.serve is None:
        main(said.creates)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(*said.serve))
