"""`benchmarks.service.reads`: `GET T` against a bare FastAPI route, and heartbeats.

One metasrv, one etcd, one node that does nothing. Reads: 32 connections over 10 tables, against a
route of the framework that answers the same bytes and does nothing else, round by round. The rates
are what one client process drives; the processor's time of each server is printed beside, because
client and server share the machine. Heartbeats: a report of 100 regions, all of them leased anew.
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.load import Load, closed_loop, connected, request_of
from benchmarks.report import ROUNDS, head, line, ratio
from benchmarks.service.bare import child_server
from benchmarks.service.creates import MANY, PATH, SPEC, Place, cpu_ms, ready, stub_node
from benchmarks.service.stub_node import RESOURCES, VERSION
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegionColumns,
    RegionStat,
)

TABLES, REGIONS = 10, 10
STUB = "stub-1"
BEAT = f"/internal/v1/nodes/{STUB}/heartbeat"
FIRST_SEQUENCE = 1_000_000  # above all that the stub itself sends


@dataclass(slots=True)
class Side:
    """One server's rounds."""

    per_second: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    """Processor time of its process for one request."""

    def add(self, load: Load, used_ms: float) -> None:
        self.per_second.append(load.per_second)
        self.cpu_us.append(used_ms * 1000 / len(load.latencies_ms))


async def measure(reads: int, beats: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=0)
        async with Playground(settings) as up, stub_node(up.metasrv_urls, Path(folder)) as node:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], node, up.pid(server.id))
            await ready(place)
            await make_tables(place)
            head(f"python -m benchmarks.service.reads --reads {reads} --beats {beats}")
            await measure_reads(place, Path(folder), reads)
            await measure_beats(place, beats)


async def make_tables(place: Place) -> None:
    partition = {"by": "hash", "columns": SPEC["primary_key"], "count": REGIONS}
    async with httpx.AsyncClient(base_url=place.metasrv, trust_env=False) as http:
        for number in range(TABLES):
            body = {"name": name_of(number), "partition": partition, **SPEC}
            answer = await http.post(PATH, json=body, headers={"prefer": "wait=30"})
            assert answer.status_code == 201, answer.text
        answer = await http.delete(f"{PATH}/first", headers={"prefer": "wait=30"})
        assert answer.status_code == 204, answer.text


def name_of(number: int) -> str:
    return f"read_{number}"


def get(number: int) -> bytes:
    return request_of("GET", f"{PATH}/{name_of(number % TABLES)}", {}, b"")


async def measure_reads(place: Place, folder: Path, reads: int) -> None:
    body = folder / "body.json"
    async with connected(place.metasrv) as connection:
        body.write_bytes(await connection.ask(get(0), b"200"))
    ours, bare = Side(), Side()
    async with child_server("benchmarks.service.bare", str(body)) as (url, pid):
        for number in range(ROUNDS + 1):  # the first is for warming up
            for side, at, process in ((bare, url, pid), (ours, place.metasrv, place.pid)):
                before = cpu_ms(process)
                load = await closed_loop(at, get, range(reads), clients=MANY, status=b"200")
                if number:
                    side.add(load, cpu_ms(process) - before)
    print(f"a table of {REGIONS} regions, {body.stat().st_size} bytes, {MANY} connections")
    line("bare route", bare.per_second, "/s")
    line("GET T", ours.per_second, "/s")
    ratio("GET T / bare route (at least 0.6)", ours.per_second, bare.per_second)
    line("bare route, processor", bare.cpu_us, "us")
    line("GET T, processor", ours.cpu_us, "us")
    ratio("the same by processor time", bare.cpu_us, ours.cpu_us)


async def measure_beats(place: Place, beats: int) -> None:
    """One connection: a node's heartbeats follow each other."""
    first = await first_beat(place)
    body = first.model_dump_json().encode()
    mark = f'"sequence":{first.sequence}'.encode()
    side, sequence = Side(), first.sequence

    def make(number: int) -> bytes:
        said = body.replace(mark, f'"sequence":{sequence + number}'.encode())
        return request_of("PUT", BEAT, {"content-type": "application/json"}, said)

    async with connected(place.metasrv) as connection:
        answer = HeartbeatAnswer.model_validate_json(await connection.ask(make(0), b"200"))
    assert (len(answer.grants), answer.instructions) == (TABLES * REGIONS, [])
    for _ in range(ROUNDS + 1):
        sequence += beats
        before = cpu_ms(place.pid)
        load = await closed_loop(place.metasrv, make, range(beats), clients=1, status=b"200")
        side.add(load, cpu_ms(place.pid) - before)
    print(f"a heartbeat of {len(first.regions.region_id)} regions, {len(body)} bytes")
    line("heartbeats, one connection", side.per_second[1:], "/s")
    line("heartbeat, processor", side.cpu_us[1:], "us")
    line("heartbeats of one core", [1e6 / each for each in side.cpu_us[1:]], "/s")


async def first_beat(place: Place) -> HeartbeatRequest:
    """Returns the heartbeat of a node that has every region that the catalog says it leads."""
    async with httpx.AsyncClient(base_url=place.metasrv, trust_env=False) as http:
        node = (await http.get(f"/v1/nodes/{STUB}")).json()
        listed = (await http.get("/v1/regions", params={"page_size": 1_000})).json()
        cluster = (await http.get("/version")).json()["cluster_id"]
    regions = [
        RegionStat(
            region_id=region["region_id"],
            epoch=region["epoch"],
            state="open",
            rows=1_234_567,
            bytes=123_456_789,
            wal_bytes=1_234_567,
            files=12,
            version=1_700_000_000_000_000_000,
        )
        for region in listed["regions"]
    ]
    return HeartbeatRequest(
        cluster_id=cluster,
        node_id=STUB,
        incarnation=node["incarnation"],
        sequence=FIRST_SEQUENCE,
        address=node["address"],
        zone=node["zone"],
        version=VERSION,
        term=1,
        resources=RESOURCES,
        regions=RegionColumns.of(regions),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=5_000, help="of each server in each round")
    parser.add_argument("--beats", type=int, default=500, help="in each round")
    given = parser.parse_args()
    asyncio.run(measure(given.reads, given.beats))
