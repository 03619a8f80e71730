"""`benchmarks.service.metastores`: creates over REST against Hive Metastore on PostgreSQL.

One metasrv, one etcd and three real nodes, which make and sync the files of each region; beside
them a Hive Metastore on a PostgreSQL that syncs each commit, both from this machine. Tables have
one column and one region. Rounds alternate, at 1 and at 32 clients; what is printed is medians of
the rounds and the ratio of the rates. Without Hive's or PostgreSQL's programs one line says so.
"""

import argparse
import asyncio
import os
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.load import Ask, Load, closed
from benchmarks.report import ROUNDS, head, line, ratio
from benchmarks.service.creates import MANY, REAL_NODES, SPEC, WARM, Place, create, ready
from benchmarks.service.metastore import create_table, metastore, missing, must_be_done
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground

OURS, HIVE = "metasrv", "Hive Metastore"
HIVE_WARM = 2_000  # creates until the JVM has compiled what they run


@dataclass(slots=True)
class Found:
    """Loads by number of clients, round by round."""

    ours: dict[int, list[Load]] = field(default_factory=dict)
    hive: dict[int, list[Load]] = field(default_factory=dict)


async def create_in_hive(port: int, name: str, numbers: range, clients: int) -> Load:
    @asynccontextmanager
    async def thrift() -> AsyncIterator[Ask]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def ask(number: int) -> None:
            writer.write(create_table(f"{name}_{number}", number))
            (length,) = struct.unpack("!i", await reader.readexactly(4))
            must_be_done(await reader.readexactly(length))

        try:
            yield ask
        finally:
            writer.close()

    return await closed(thrift, numbers, clients=clients)


async def measured(folder: Path, port: int, creates: int) -> Found:
    found = Found()
    settings = PlaygroundOptions(data_dir=folder, datanodes=REAL_NODES)
    async with Playground(settings) as up:
        server = next(one for one in up.programs if one.role == "metasrv")
        place = Place(server.url, up.etcd_urls[0], "", up.pid(server.id))
        await ready(place)
        await create(place, "warm", range(WARM), clients=4, spec=SPEC)
        await create_in_hive(port, "warm", range(HIVE_WARM), MANY)
        for number in range(ROUNDS):
            for clients in (1, MANY):
                numbers = range(creates * (1 if clients == 1 else 4))
                name = f"r{number}_{clients}"
                ours = await create(place, name, numbers, clients=clients)
                found.ours.setdefault(clients, []).append(ours)
                hive = await create_in_hive(port, name, numbers, clients)
                found.hive.setdefault(clients, []).append(hive)
    return found


def show(found: Found, creates: int) -> None:
    head(f"python -m benchmarks.service.metastores --creates {creates}")
    for clients, ours in found.ours.items():
        hive = found.hive[clients]
        who = f"{clients} client{'s' * (clients > 1)}"
        line(f"{OURS}, {who}", [one.per_second for one in ours], "/s")
        line(f"{HIVE}, {who}", [one.per_second for one in hive], "/s")
        name = f"{OURS} / {HIVE}, {who}"
        ratio(name, [one.per_second for one in ours], [one.per_second for one in hive])


def main(creates: int) -> int:
    """0 also where Hive is missing: its line says what to install."""
    if (fix := missing()) is not None:
        print(f"skipped: {fix}")
        return 0
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        os.chmod(folder, 0o755)  # the owner of PostgreSQL enters it
        with metastore(Path(folder)) as port:
            found = asyncio.run(measured(Path(folder, "playground"), port, creates))
    show(found, creates)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.service.metastores", description=__doc__)
    parser.add_argument("--creates", type=int, default=50, help="of one client in each round")
    raise SystemExit(main(parser.parse_args().creates))
