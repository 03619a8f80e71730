"""Nodes and leaders that die while the keys of a large batch are written, and what repairs them.

A failover of a table that the batch makes is asked for before the table is there: it holds its
locks as soon as the version has happened, and so reads the route while keys are being written.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from keys.commit.settled import Settling
from keys.commit.staging import StagingSizes
from keys.commit.txn import Txn, snapshot
from keys.model.cluster import LeaderKey, Sequence, SequenceKey
from keys.model.records import ClientRequirements
from keys.model.staging.parts import BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.store.kv import Compare, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.value import decode
from metasrv.check.check_backup import STORE_RULES
from metasrv.check.check_input import read_facts
from metasrv.check.rule import Severity, violations_of
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.tables.rename_table import RenameTable
from procedures.machine import ProcedureState
from procedures.ports import TransactionLimits
from tests.fakes import term
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.term import Server
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.batches.batches import MIXED, NEW
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.tables import (
    NODES,
    put_schema,
    put_table,
    region_ids,
    reserve_ids,
    table_info,
)
from tests.sim.loop import WORLD, SimLoop, run

pytestmark = pytest.mark.crash

DEAD = "dn-3"
CHUNK_MS = 700
"""Time that the store takes for some of the keys: a failover looks several times meanwhile."""
SIZES = StagingSizes(part_bytes=800, chunk_ops=3)
SMALL = TransactionLimits(operations=3)
Patch = tuple[Any, str, Any]
RULES = [rule for rule in STORE_RULES if not rule.id.startswith(("leader", "candidate"))]
"""There are no leases of servers here."""
TABLE_MOVES, NODE_MOVES = "failover_table", "failover_node"
MOVES = (TABLE_MOVES, NODE_MOVES)
NEVER = -1


class SlowStore(MemoryKv):
    """Tells of the keys of a large version before they are written, and of its parts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.clock = clock
        self.at_chunk: Callable[[], Awaitable[None]] | None = None
        self.at_part: Callable[[], None] | None = None

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        if self.at_part is not None and _writes(request, BatchPartKey.under()):
            at_part, self.at_part = self.at_part, None
            at_part()
        if self.at_chunk is not None and _is_chunk(request):
            await self.at_chunk()
        return await super().txn(request, deadline_ms=deadline_ms)


def _writes(request: Request, keys: tuple[bytes, bytes]) -> bool:
    return any(keys[0] <= write.key < keys[1] for write in request.writes)


def _is_chunk(request: Request) -> bool:
    """Whether it writes some of the keys: it compares how many are."""
    start, end = LargeUpdateKey.under()
    return any(start <= one.key < end and one.mod_revision for one in request.compares)


@dataclass
class Life:
    """A node dies before the version happens, and the leader before the chunk of that number."""

    at_chunk: int
    """NEVER: the leader lives."""
    moves: str
    """The kind of the failover."""
    loop: SimLoop
    wrong: list[str] = field(default_factory=list)
    chunks: int = 0
    is_renamed: bool = False
    """Whether a rename was taken that a client asks for meanwhile."""

    async def live(self) -> list[str]:
        cluster = Cluster(self.loop, make_store=SlowStore, one_transaction=SMALL, sizes=SIZES)
        self.cluster, store = cluster, cluster.kv
        assert isinstance(store, SlowStore)
        old = DEAD if self.moves == NODE_MOVES else "dn-2"
        await given(cluster, await cluster.bootstrap(), old)
        first = await cluster.started("meta-1")
        store.at_part, store.at_chunk = self._node_dies, self._chunk
        await self._ask(first, "batch", MIXED)
        if self.moves == TABLE_MOVES:
            await self._ask(first, "failover_table", MOVED)
        if not await cluster.quiet():
            self.wrong.append(f"never ends: {cluster.living()}")
        self._judge()
        if not self.is_renamed:
            self.wrong.append("the rename was never taken")
        return list(dict.fromkeys(self.wrong))

    async def _ask(self, server: Server, kind: str, state: ProcedureState) -> None:
        attempt = SubmitRequest(self.cluster.ids.procedure_id(), CLIENT, "")
        own = self.cluster.kinds_at(server)[kind]
        await self.cluster.ask(server, lambda manager: manager.submit(own, state, attempt))

    def _node_dies(self) -> None:
        """After its region was made, before the version happens."""
        self.cluster.plane.nodes[DEAD].die()
        if self.moves == NODE_MOVES:
            self.loop.spawn(WORLD, self._insists(self._fail_over))
        self.loop.spawn(WORLD, self._insists(self._rename))

    async def _chunk(self) -> None:
        self._look()
        self.chunks += 1
        if self.chunks - 1 == self.at_chunk:
            await self.loop.crash()
        await self.cluster.clock.sleep_ms(CHUNK_MS)

    def _look(self) -> None:
        """`metasrv check`, whatever is written by now."""
        store = self.cluster.kv
        found = violations_of(RULES, read_facts(store.dump(), store.revision))
        self.wrong += [one.line for one in found if one.severity is Severity.VIOLATION]

    async def _insists(self, work: Callable[[Server], Awaitable[None]]) -> None:
        """A client asks whoever leads, until it is answered."""
        while True:
            server = self.cluster.leader
            if server.leads is not None and not self.cluster.is_down(server):
                with suppress(MetaError):
                    await work(server)
                    return
            await self.cluster.clock.sleep_ms(100)

    async def _fail_over(self, server: Server) -> None:
        await self._ask(server, "failover_node", FailoverNode(node=DEAD, reason="test"))

    async def _rename(self, server: Server) -> None:
        """Renames again what the batch renames: that new name is there with its version."""
        await self._ask(server, "rename_table", RENAME)
        self.is_renamed = True

    # ---- afterwards

    def _judge(self) -> None:
        store = self.cluster.kv._store
        agreement = history_of(store.log_from(1))
        self.wrong += [*agreement.wrong, *self.cluster.violations, *self.cluster.plane.violations]
        ends = agreement.family("__procedure_history")
        for (procedure,), history in ends.items():
            if history["outcome"] != "succeeded":
                last = history["last"]
                self.wrong.append(f"{last['kind']} {procedure} ended: {last['error']}")
        for route in agreement.family("__table_route").values():
            for region in route["region_routes"]:
                node = self.cluster.plane.nodes[region["leader"]]
                if not node.alive or region["region_id"] not in node.serving:
                    self.wrong.append(f"left on {region['leader']}: {region}")
        self._look()
        self._nothing_between()

    def _nothing_between(self) -> None:
        """Nothing else is written from the version on until the last of its keys is."""
        start, end = LargeUpdateKey.under()
        is_copying = False
        for entry in self.cluster.kv._store.log_from(1):
            large = [event for event in entry.events if start <= event.key < end and event.value]
            others = {event.key for event in entry.events} - {bytes(LeaderKey())}
            if is_copying and not large and others:
                self.wrong.append(f"written at {entry.revision} before all keys were: {others}")
            for event in large:
                assert event.value is not None
                is_copying = not decode(LargeUpdate, event.value, key="large").is_copied


CLIENT = ClientRequirements(submitted_by="anna", request_id="r", statement={})
MOVED = FailoverTable(
    table_id=NEW,
    name="main.hr.new",
    source=DEAD,
    region_ids=region_ids(NEW, 2)[1:],
    reason="test",
)
RENAME = RenameTable(
    catalog="main",
    schema_name="sales",
    name="s",
    table_id=TABLE,
    new_schema="sales",
    new_name="r",
)


async def given(cluster: Cluster, fence: Compare, old: str) -> None:
    """*old*: the node of a region that is there before the batch."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    key = SequenceKey("schema_id")
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    await cluster.change(fence, Txn.on(seen).put(key, Sequence(next=1_100)))
    await put_schema(cluster, fence, "sales")
    await put_table(cluster, fence, table_info(TABLE, "t", 2), (old, "dn-1"))
    await put_table(cluster, fence, table_info(OTHER, "u", 1), ("dn-2",))


def life(at_chunk: int, moves: str) -> list[str]:
    return run(lambda loop: Life(at_chunk, moves, loop).live(), 1)


def chunks_of_one() -> int:
    lives: list[Life] = []

    async def main(loop: SimLoop) -> None:
        lives.append(Life(NEVER, NODE_MOVES, loop))
        await lives[0].live()

    run(main, 1)
    return lives[0].chunks


CHUNKS = chunks_of_one()


def said(at_chunk: int, moves: str) -> str:
    try:
        return "; ".join(life(at_chunk, moves))
    except (AssertionError, MetaError, ExceptionGroup) as error:
        return f"the code itself has noticed: {error!r}"


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("at_chunk", range(NEVER, CHUNKS))
def test_given_deaths_while_keys_are_written_then_they_come_first_and_failovers_see_all_of_them(
    at_chunk: int, moves: str
) -> None:
    assert CHUNKS > 3
    assert life(at_chunk, moves) == []


async def at_once(self: Settling) -> None:
    """A read of the leader waits for no keys."""


async def as_it_is(self: Settling, revision: int) -> bool:
    """It is taken as whole, whatever is being written."""
    return True


async def nothing_left(*_: object, **__: object) -> None:
    """A new leader does not look which keys the one before has left."""


UNSETTLED: tuple[Patch, ...] = (
    (Settling, "wait", at_once),
    (Settling, "is_whole", as_it_is),
)
PLANTED: dict[str, tuple[tuple[Patch, ...], str, str]] = {
    "a failover that reads keys which are being written": (UNSETTLED, TABLE_MOVES, "left on dn-3"),
    "a change that reads names which are being written": (UNSETTLED, NODE_MOVES, "table-not-found"),
    "a leader that goes on before the keys of the one before": (
        ((term, "keys_left", nothing_left),),
        NODE_MOVES,
        "a version while keys of the one before are not written",
    ),
}
"""Patches, the kind of the failover, and words of the check that finds the bug."""


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_a_leader_dies_at_a_chunk_then_a_life_finds_it(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patches, moves, check = PLANTED[bug]
    for patch in patches:
        monkeypatch.setattr(*patch)
    assert said(NEVER, moves) == "", "found without a fault"

    assert any(check in said(at_chunk, moves) for at_chunk in range(CHUNKS))
