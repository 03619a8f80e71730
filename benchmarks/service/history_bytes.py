"""`benchmarks.service.history_bytes`: bytes of etcd that procedures take once they are over.

Real creates over REST show what is stored of one: its history and its idempotency key. So many
more, each with ids, names, times and digests of its own, are written into an empty etcd, which is
then compacted and defragmented. Printed: what each takes of etcd's file and of its resident memory,
and what a day of 20 changes a second comes to.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import httpx

from benchmarks.service.creates import PATH, Place, create, ready, stub_node
from benchmarks.service.raw import DEADLINE_MS
from keys.model.records import Idempotency, IdempotencyKey, ProcedureHistory, ProcedureHistoryKey
from keys.store.etcd import EtcdKv
from keys.store.kv import Kv, Put, Request
from keys.store.scan import scan
from keys.value import decode, encode
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.ids import uuid7

COLUMNS = [
    {"name": "id", "type": "int64", "nullable": False},
    {"name": "carrier", "type": "string"},
]
SPEC = {"columns": COLUMNS, "primary_key": ["id"]}
REAL = 50
PAIRS = 60  # of one transaction
AT_ONCE = 4
DAY = 20 * 86_400
GIB = 1 << 30
FILE, RSS = "etcd_mvcc_db_total_size_in_use_in_bytes", "process_resident_memory_bytes"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of one etcd, in bytes."""

    file: float
    resident: float


def pairs(real: list[ProcedureHistory], count: int) -> Iterator[tuple[Put, Put]]:
    """History and key of procedures that were over one after the other, 20 a second."""
    rng = Random(1)
    for number in range(count):
        model = real[number % len(real)]
        at_ms = model.last.submitted_at_ms + 50 * number
        procedure = uuid7(at_ms, rng.randbytes(10))
        history = renamed(model, number, at_ms, rng)
        digest = history.last.client.idempotency
        assert digest is not None
        fingerprint = rng.randbytes(32).hex()
        known = Idempotency(procedure=procedure, fingerprint=fingerprint, at_ms=at_ms)
        yield (
            Put(bytes(ProcedureHistoryKey(procedure)), encode(history)),
            Put(bytes(IdempotencyKey(digest)), encode(known)),
        )


def renamed(model: ProcedureHistory, number: int, at_ms: int, rng: Random) -> ProcedureHistory:
    """Returns a copy of a create's history under other names and ids, which differ as real ones
    do."""
    last = model.last
    old_id, new_id = int(last.resource.id), 100_000 + number
    text = model.model_dump_json()
    texts = {
        str(old_id << 32): str(new_id << 32),
        f'"table_id":{old_id}': f'"table_id":{new_id}',
        f":{old_id}": f":{new_id}",
        f'"{old_id}"': f'"{new_id}"',
        str(last.client.idempotency): rng.randbytes(32).hex(),
        last.client.request_id: rng.randbytes(8).hex(),
        last.resource.name.rpartition(".")[2]: f"flights_{rng.randrange(10**6)}",
        str(last.submitted_at_ms): str(at_ms),
        str(last.deadline_at_ms): str(at_ms + last.deadline_at_ms - last.submitted_at_ms),
        str(model.finished_at_ms): str(at_ms + rng.randrange(1, 40)),
    }
    for before, after in texts.items():
        text = text.replace(before, after)
    return ProcedureHistory.model_validate_json(text)


async def measure(entries: int) -> None:
    real = await learned()
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        store = PlaygroundOptions(data_dir=Path(folder), metasrvs=0, datanodes=0)
        async with Playground(store) as up:
            kv = await EtcdKv.connect([up.etcd_urls[0].removeprefix("http://")], b"metasrv/")
            before = await sizes(up.etcd_urls[0])
            written = await write(kv, real, entries)
            after = await sizes(up.etcd_urls[0])
            await kv.close()
    print(f"python -m benchmarks.service.history_bytes --entries {entries} ({PATH})")
    json = sum(len(one.model_dump_json()) for one in real) / len(real)
    print(f"{'a history as JSON':44}{json:9.0f} B")
    print(f"{'keys and values of a procedure':44}{written / entries:9.0f} B")
    for name, taken in (
        ("etcd's file", after.file - before.file),
        ("resident memory of etcd", after.resident - before.resident),
    ):
        each = taken / entries
        print(f"{name + ' for each':44}{each:9.0f} B")
        print(f"{name + ', a day of 20 a second':44}{each * DAY / GIB:9.2f} GiB")


async def learned() -> list[ProcedureHistory]:
    """Histories of real creates."""
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), datanodes=0)
        async with Playground(settings) as up, stub_node(up.metasrv_urls, Path(folder)) as node:
            server = next(one for one in up.programs if one.role == "metasrv")
            place = Place(server.url, up.etcd_urls[0], node, up.pid(server.id))
            await ready(place)
            await create(place, "flights", range(REAL), clients=4, spec=SPEC)
            kv = await EtcdKv.connect([place.endpoint], b"metasrv/")
            try:
                return await histories(kv)
            finally:
                await kv.close()


async def histories(kv: Kv) -> list[ProcedureHistory]:
    items, _ = await scan(kv, ProcedureHistoryKey.under(), deadline_ms=DEADLINE_MS)
    found = [decode(ProcedureHistory, item.value, key=item.key.decode()) for item in items]
    return [one for one in found if one.last.client.idempotency]


async def write(kv: Kv, real: list[ProcedureHistory], entries: int) -> int:
    """Bytes of all keys and values."""
    size, left = 0, pairs(real, entries)
    while some := list(islice(left, PAIRS * AT_ONCE)):
        puts = [put for pair in some for put in pair]
        size += sum(len(put.key) + len(put.value) for put in puts)
        parts = [tuple(puts[at : at + 2 * PAIRS]) for at in range(0, len(puts), 2 * PAIRS)]
        await fan_out([partial(_put, kv, part) for part in parts], at_once=AT_ONCE)
    return size


async def _put(kv: Kv, part: tuple[Put, ...]) -> None:
    await kv.txn(Request(writes=part), deadline_ms=DEADLINE_MS)


async def sizes(etcd: str) -> Sizes:
    """Compacts and defragments etcd, and returns its sizes."""
    async with httpx.AsyncClient(base_url=etcd, trust_env=False, timeout=120) as http:
        head = (await http.post("/v3/kv/range", json={"key": "AA=="})).json()["header"]
        compaction = {"revision": head["revision"], "physical": True}
        (await http.post("/v3/kv/compaction", json=compaction)).raise_for_status()
        (await http.post("/v3/maintenance/defragment", json={})).raise_for_status()
        lines = (await http.get("/metrics")).text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith((FILE, RSS)))
    return Sizes(float(found[FILE]), float(found[RSS]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=200_000)
    asyncio.run(measure(parser.parse_args().entries))
