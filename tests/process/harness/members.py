"""Three etcd members, three metasrvs, three datanodes; each in turn killed, frozen, slow or full.

Clients go on all the while, some that ask again and some that do not. After each fault a change
must be possible again; at the end every promise is looked up in the history of the store.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx

from tests.etcd.cluster import EtcdCluster, ids_of
from tests.etcd.links import opened
from tests.process.harness.ddl_clients import PUBLIC, clients_of
from tests.process.harness.faults import FAULTS, NEEDS_MORE, Field, disk_of
from tests.process.harness.node_outages import rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, running, table_spec
from tests.process.harness.verdict import judged
from tests.process.harness.writer import wrong_rows

CLIENTS = 6
BACK_S = 120.0  # on a machine that is busy with all of it; 1 to 3 s on one that is not
CONVERGE_S = 300.0
FOR_EVER_MS = 1 << 50
LIMITS = httpx.Limits(max_connections=64, keepalive_expiry=1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    faults: Sequence[str]
    hold_ms: int
    """Duration of each fault; longer than the leases, so that a stopped process is given up."""
    flags: Mapping[str, str] | None = None
    """Flags of the metasrvs; None: the quick ones."""


async def members_fail(folder: Path, plan: Plan) -> Seen:
    async with (
        _field(folder, plan) as field,
        field.rig.client() as db,
        httpx.AsyncClient(trust_env=False, limits=LIMITS, timeout=60) as http,
    ):
        rig = field.rig
        await rig.leader()
        await db.tables.create(table_spec("rows", regions=3))
        writers = await writers_of(db, "rows")
        clients = clients_of(rig.urls, count=CLIENTS, until_ms=FOR_EVER_MS, http=http)
        async with asyncio.TaskGroup() as tasks, writing(writers):
            for client in clients:
                tasks.create_task(client.run())
            back_ms = await _each_fault(field, plan)
            for client in clients:
                client.until_ms = 0
        rested_ms = rig.clock.mono_ms()
        await rig.converged(CONVERGE_S)
        rested_ms = rig.clock.mono_ms() - rested_ms
        await rig.until(rig.frontends_serve, CONVERGE_S)
        rows = await rows_of(db, "rows")
        verdict = await judged(rig, clients)
    told = Counter(attempt.told for client in clients for attempt in client.attempts)
    numbers = {
        "possible again after ms": back_ms,
        "changes": dict(told),
        "answers": dict(sum((client.statuses for client in clients), Counter[str]())),
        "versions": verdict.versions,
        "procedures": verdict.procedures,
        "resumed": verdict.resumed,
        "at rest after ms": rested_ms,
        "hasty": writers[0],
        "patient": writers[1],
    }
    kept = must(
        changes_were_made=told["ok"] > 0,
        rows_were_written=min(writer.count("ok") for writer in writers) > 0,
    )
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *verdict.wrong))


async def _each_fault(field: Field, plan: Plan) -> dict[str, int | str]:
    """Returns the ms after each fault until a change was possible again, or a text for a fault that
    is not permitted here."""
    back_ms: dict[str, int | str] = {}
    for name in plan.faults:
        if name in NEEDS_MORE and field.small_disk is None:
            back_ms[name] = "not permitted here"
            continue
        async with FAULTS[name](field):
            await field.rig.clock.sleep_ms(plan.hold_ms)
        healed_ms = field.rig.clock.mono_ms()
        await field.rig.until(partial(_created, field.rig, f"after_{len(back_ms)}"), BACK_S)
        back_ms[name] = field.rig.clock.mono_ms() - healed_ms
    return back_ms


async def _created(rig: Rig, name: str) -> bool:
    """Sent to each server in turn with the same key until one says that it is done."""
    headers = {"prefer": "wait=2", "idempotency-key": name}
    spec = table_spec(name, regions=1)
    for url in rig.urls:
        try:
            answer = await rig.http.post(url + PUBLIC, json=spec, headers=headers, timeout=8)
        except httpx.TransportError:
            continue
        if answer.status_code == 201:
            return True
    return False


@asynccontextmanager
async def _field(folder: Path, plan: Plan) -> AsyncIterator[Field]:
    etcd = EtcdCluster(folder / "etcd")
    ports = [member.peer_port for member in etcd.members]
    with disk_of(folder / "etcd" / "e2" / "data") as small_disk:
        async with opened(ports) as links:
            etcd.join(links.urls)
            try:
                await asyncio.to_thread(etcd.start)
                links.ids = await ids_of(etcd.members)
                async with _running(folder, plan, etcd) as rig:
                    yield Field(rig, etcd, links, small_disk)
            finally:
                await asyncio.to_thread(etcd.kill)


def _running(folder: Path, plan: Plan, etcd: EtcdCluster) -> AbstractAsyncContextManager[Rig]:
    urls = [member.url for member in etcd.members]
    return running(folder, metasrvs=3, datanodes=3, flags=plan.flags, etcd=urls)
