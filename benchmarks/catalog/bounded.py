"""`benchmarks.catalog.bounded`: bytes of etcd under many changes, with snapshots and compaction.

The real committer, log and compaction of a leader on a real etcd, without procedures: each change
alters one of the tables, and many are on their way. A history of days passes in a minute: the
catalog's history has a small bound, and etcd is compacted behind it every second. Printed: etcd's
bytes in use over time, and all bytes that were sent as a multiple of those of the log.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from benchmarks.report import head
from benchmarks.service.filled import Filling, fill
from keys.catalog.follower import Follower
from keys.commit.change import change
from keys.commit.txn import Read, Snapshot
from keys.model.log import CatalogUpdateKey, TableAltered
from keys.model.snapshot.snapshots import EVERY_PART, SnapshotVersionKey
from keys.model.tables import TableInfo, TableInfoKey
from keys.store.etcd import EtcdKv
from keys.store.kv import Put, Request, TxnAnswer
from keys.store.measured import MeasuredKv
from keys.store.scan import scan
from keys.value import decode
from metasrv.leadership.election import Election, ElectionTiming, ServerIdentity, win
from metasrv.leadership.leadership import ServerDeps, open_term
from metasrv.leadership.log import compaction
from metasrv.leadership.log.compaction import LogCompaction
from metasrv.leadership.term import Term
from metasrv.playground.plan import KEY_PREFIX, PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.program.config import ServerConfig
from metasrv_base.clock import SystemClock
from metasrv_base.ids import RandomIds
from metasrv_base.rng import SystemRng
from tests.metasrv.api.fakes import NoJobs

MIB = 1 << 20
AT_ONCE = 64  # changes on their way
LOOKS = 12
CHECKED_MS = 500
KEPT_MS = 5_000
IN_USE = "etcd_mvcc_db_total_size_in_use_in_bytes"
LOG, VERSIONS = CatalogUpdateKey.under().start, bytes(SnapshotVersionKey())


@dataclass(slots=True)
class Sent:
    """Bytes of keys and values that were put."""

    log: int = 0
    snapshots: int = 0
    others: int = 0

    def note(self, request: Request) -> None:
        for write in request.writes:
            if not isinstance(write, Put):
                continue
            size = len(write.key) + len(write.value)
            if write.key.startswith(LOG):
                self.log += size
            elif EVERY_PART.start <= write.key <= VERSIONS:
                self.snapshots += size
            else:
                self.others += size


class CountingKv(MeasuredKv):
    """Counts what is sent."""

    def __init__(self, kv: EtcdKv, clock: SystemClock) -> None:
        super().__init__(kv, clock, lambda call, code, took_ms: None)
        self.sent = Sent()

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        self.sent.note(request)
        return await super().txn(request, deadline_ms=deadline_ms)


@dataclass(frozen=True, slots=True)
class Look:
    """etcd's bytes in use after so many changes."""

    changes: int
    size_bytes: float


Infos = dict[int, tuple[TableInfo, int]]
"""Id of a table -> its definition, and the revision of its key."""


async def alter(term: Term, infos: Infos, ids: list[int], changes: int) -> None:
    """Alters the tables *ids* in turn, one change after the other."""
    for number in range(changes):
        table_id = ids[number % len(ids)]
        info, revision = infos[table_id]
        options = {**info.options, "owner": f"team-{info.version}"}
        new = info.model_copy(update={"version": info.version + 1, "options": options})
        read = Snapshot(0, {bytes(TableInfoKey(table_id)): Read(info, revision)})
        committed = await term.committer.commit(change(read, TableAltered(info=new)))
        infos[table_id] = new, committed.revision


async def measure(tables: int, changes: int, history_bytes: int) -> None:
    compaction.EVERY_MS, compaction.STORE_EVERY_MS = CHECKED_MS, 2 * CHECKED_MS
    compaction.STORE_HISTORY_MS = KEPT_MS
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        options = PlaygroundOptions(data_dir=Path(folder), metasrvs=0, datanodes=0)
        async with Playground(options) as up:
            endpoint = up.etcd_urls[0]
            await fill(endpoint.removeprefix("http://"), Filling(tables, regions=1))
            await changed(endpoint, changes, history_bytes)


async def changed(endpoint: str, changes: int, history_bytes: int) -> None:
    clock = SystemClock()
    config = ServerConfig(server_id="bench", data_dir=Path("unused"))
    store = await EtcdKv.connect([endpoint.removeprefix("http://")], KEY_PREFIX.encode())
    kv = CountingKv(store, clock)
    follower = Follower(kv, clock, deadline_ms=config.store_deadline_ms)
    world = ServerDeps(config, kv, clock, RandomIds(clock), SystemRng(), follower, NoJobs())
    timing = ElectionTiming(config.leader_ttl_ms, config.keep_alive_ms, config.store_deadline_ms)
    election = Election(kv, clock, ServerIdentity("bench", "http://127.0.0.1:1", "0"), timing)
    session = await election.open_session()
    async with asyncio.TaskGroup() as tasks:
        work = [tasks.create_task(election.keep_alive(session))]
        work.append(tasks.create_task(follower.log.follow()))
        await follower.log.loaded.wait()
        fence = await win(election, session, clock, lambda _: None)
        async with open_term(world, fence) as term:
            work.append(tasks.create_task(term.committer.run()))
            work.append(tasks.create_task(LogCompaction(term, kv, follower, clock).run()))
            await term.settings.put("catalog_history_bytes_max", history_bytes, "benchmark")
            term.ready.set()
            before, began_ms = replace(kv.sent), clock.mono_ms()
            looks = await altered(term, kv, changes, endpoint)
            took_s = (clock.mono_ms() - began_ms) / 1000
            shown(looks, kv.sent, before, took_s)
            for task in work:
                task.cancel()
    await election.resign(session)
    await kv.close()


async def altered(term: Term, kv: CountingKv, changes: int, endpoint: str) -> list[Look]:
    """Makes *changes*, as many tables at once as AT_ONCE, and looks at etcd LOOKS times."""
    items, _ = await scan(kv, TableInfoKey.under(), deadline_ms=term.ports.deadline_ms)
    infos: Infos = {}
    for item in items:
        info = decode(TableInfo, item.value, key=item.key.decode())
        infos[info.table_id] = info, item.mod_revision
    ids, looks = sorted(infos), list[Look]()
    shares = [ids[first::AT_ONCE] for first in range(min(AT_ONCE, len(ids)))]
    each = changes // LOOKS // len(shares)
    for look in range(1, LOOKS + 1):
        async with asyncio.TaskGroup() as tasks:
            for share in shares:
                tasks.create_task(alter(term, infos, share, each))
        looks.append(Look(look * each * len(shares), await in_use(endpoint)))
    return looks


async def in_use(endpoint: str) -> float:
    async with httpx.AsyncClient(base_url=endpoint, trust_env=False) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(IN_USE))


def shown(looks: Sequence[Look], after: Sent, before: Sent, took_s: float) -> None:
    for look in looks:
        print(f"{look.changes:10,} changes: {look.size_bytes / MIB:8.1f} MiB of etcd in use")
    log, snapshots = after.log - before.log, after.snapshots - before.snapshots
    others = after.others - before.others
    done = looks[-1].changes
    print(f"{done / took_s:,.0f} changes a second, for {took_s:,.0f} s")
    print(f"the log: {log / MIB:.1f} MiB, {log / done:.0f} bytes a change")
    print(f"log and snapshots / log: {(log + snapshots) / log:.2f}")
    print(f"all that was put / log: {(log + snapshots + others) / log:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--changes", type=int, default=30_000)
    parser.add_argument("--history-mib", type=float, default=4)
    given = parser.parse_args()
    command = f"benchmarks.catalog.bounded --tables {given.tables} --changes {given.changes}"
    head(f"python -m {command} --history-mib {given.history_mib:g}", rounds=1)
    asyncio.run(measure(given.tables, given.changes, int(given.history_mib * MIB)))


if __name__ == "__main__":
    main()
