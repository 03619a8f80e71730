"""Registration and heartbeats: how a node comes into a cluster, and how it keeps its leases."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import structlog

from dataplane.datanode.membership.membership import Membership
from dataplane.datanode.orders.journal import NodeJournal
from dataplane.datanode.orders.journal_format import Joined
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from metasrv_base.clock import Clock
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    NodeResources,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.orders import Order, OrderRequest, OrderResponse

REGISTER_BACKOFF = Backoff(first_ms=100, max_ms=2_000)
log = structlog.get_logger()


class NodeLeader(Protocol):
    """metasrv as a node sees it. Raises the five errors."""

    async def register(self, request: RegisterRequest) -> RegisterAnswer: ...

    async def heartbeat(self, request: HeartbeatRequest, deadline_ms: int) -> HeartbeatAnswer: ...


class Machine(Protocol):
    """The node's machine. Raises Unavailable for what cannot be read now."""

    async def resources(self) -> NodeResources: ...

    async def folders(self) -> Sequence[str]:
        """Names of all folders of regions under its root."""
        ...


NEVER = frozenset({"wrong-cluster", "node-removed"})


@dataclass(frozen=True, slots=True)
class HeartbeatPorts:
    """The parts of a process that its heartbeats use."""

    leader: NodeLeader
    machine: Machine
    clock: Clock
    leases: RegionLeases


class HeartbeatLoop:
    """`run` sends heartbeats; `run_instructions`, beside it, carries out the instructions in their
    answers."""

    def __init__(
        self,
        membership: Membership,
        desk: OrderExecutor,
        journal: NodeJournal,
        regions: NodeRegionSet,
        world: HeartbeatPorts,
    ) -> None:
        self._membership = membership
        self._desk = desk
        self._journal = journal
        self._regions = regions
        self._world = world
        self._instructions: asyncio.Queue[OrderRequest] = asyncio.Queue(maxsize=1)
        self._beating = asyncio.Lock()

    async def run(self) -> None:
        """Sends heartbeats for ever. Raises Conflict `wrong-cluster`, `node-removed` or
        `stale-incarnation` (a newer process has our id): this process must never serve."""
        while True:
            if not self._membership.is_registered:
                await self._register()
            started_ms = self._world.clock.mono_ms()
            async with self._beating:
                if self._membership.is_registered:  # it may have been adopted meanwhile
                    await self._beat()
                if self._membership.is_registered and self._membership.reports.is_wanted:
                    await self._beat()
            spent_ms = self._world.clock.mono_ms() - started_ms
            await self._world.clock.sleep_ms(max(0, self._membership.heartbeat_ms - spent_ms))

    async def execute(self, request: OrderRequest) -> OrderResponse:
        """Orders that came by themselves. A term that the node was not told is asked for first:
        whoever claims it need not be a leader (docs/protocols.md P3).

        Raises as `OrderExecutor.execute`.
        """
        if self._desk.is_in_doubt(request):
            await self._ask_for_term(request.term)
        return await self._desk.execute(request)

    async def _ask_for_term(self, term: int) -> None:
        """One heartbeat that was sent after this call, for all who wait meanwhile."""
        sent_before = self._membership.sequence
        async with self._beating:
            is_asked = self._membership.sequence > sent_before
            if self._desk.term < term and self._membership.is_registered and not is_asked:
                try:
                    await self._beat()
                except Conflict as error:  # the next one of `run` ends this process
                    raise Unavailable(what="the node", reason=error.code) from error

    @asynccontextmanager
    async def silent(self) -> AsyncIterator[None]:
        """No heartbeat and no registration is under way in the block: no answer that was given to
        the old cluster's node counts behind it."""
        async with self._beating:
            yield

    async def run_instructions(self) -> None:
        """One set at a time. What fails is asked for again by a later answer."""
        while True:
            request = await self._instructions.get()
            try:
                await self._desk.execute(request)
            except MetaError as error:
                log.warning("instructions_refused", code=error.code, **_shown(error))

    async def _register(self) -> None:
        attempt = 0
        while True:
            try:
                async with self._beating:
                    answer = await self._registered()
                    self._membership.joined(answer)
            except MetaError as error:
                self._refuse(error)
                attempt += 1
                await self._world.clock.sleep_ms(REGISTER_BACKOFF.delay_ms(attempt, 0))
            else:
                log.info("node_registered", cluster_id=answer.cluster_id, term=answer.term)
                return

    async def _registered(self) -> RegisterAnswer:
        """The answer, once the cluster id and the term in it are on our disk."""
        resources = await self._world.machine.resources()
        folders = await self._world.machine.folders()
        request = self._membership.registration(resources, folders)
        answer = await self._world.leader.register(request)
        own = self._journal.state.cluster_id
        if own is None:
            await self._journal.commit([Joined(cluster_id=answer.cluster_id)])
        elif own != answer.cluster_id:
            raise Conflict("wrong-cluster", expected=own, found=answer.cluster_id)
        await self._desk.hear_term(answer.term)
        return answer

    async def _beat(self) -> None:
        """One heartbeat. Silence changes nothing here: leases end by our own clock."""
        me = self._membership
        try:
            resources = await self._world.machine.resources()
        except MetaError as error:  # as if nobody had heard it
            self._refuse(error)
            return
        me.sequence += 1
        regions = self._regions
        refused = regions.refusals.stats()
        digest = regions.addresses.digest if regions.has_copies else None
        request = me.heartbeat(self._desk.term, resources, regions.stats(), refused, digest)
        sent_ms = self._world.clock.mono_ms()
        self._world.leases.sent(me.sequence, sent_ms)
        try:
            answer = await self._world.leader.heartbeat(request, 2 * me.heartbeat_ms)
            await self._take(answer, sent_ms)
        except NotFound as error:
            me.is_registered = False
            log.warning("heartbeat_refused", code=error.code)
        except MetaError as error:
            self._refuse(error)

    async def _take(self, answer: HeartbeatAnswer, sent_ms: int) -> None:
        """A deposed leader's word is nothing: neither its leases nor its instructions. Nor is that
        of a new one whose term cannot be written down (Unavailable)."""
        me = self._membership
        if answer.sequence != me.sequence or answer.term < self._desk.term:
            log.warning("heartbeat_answer_stale", term=answer.term, sequence=answer.sequence)
            return
        await self._desk.hear_term(answer.term)
        granted = me.reports.answered(answer)
        self._world.leases.granted(answer.sequence, answer.lease_ms, granted)
        me.heard_ms, me.lease_ms, me.refused_by = sent_ms, answer.lease_ms, None
        me.settings_version = answer.settings_version
        me.catalog_version = answer.catalog_version
        if answer.addresses is not None:
            self._regions.hear_addresses(answer.addresses)
        orders = [order for order in answer.instructions if self._regions.is_worth_trying(order)]
        self._desk.make_way(answer.term, orders)  # those of before may wait for copies
        if orders and self._instructions.empty():
            self._instructions.put_nowait(self._request(answer.term, orders))

    def _request(self, term: int, orders: list[Order]) -> OrderRequest:
        me = self._membership
        assert me.cluster_id is not None
        return OrderRequest(
            cluster_id=me.cluster_id,
            node_id=me.identity.node_id,
            term=term,
            orders=orders,
        )

    def _refuse(self, error: MetaError) -> None:
        """One `stale-incarnation` may be an answer to a copy of an old heartbeat; two are not."""
        is_again = self._membership.refused_by == error.code
        if error.code in NEVER or (error.code == "stale-incarnation" and is_again):
            raise Conflict(error.code, **error.facts) from error
        if not is_again:
            log.warning("metasrv_unreachable", code=error.code, **_shown(error))
        self._membership.refused_by = error.code


def _shown(error: MetaError) -> dict[str, object]:
    return {"facts": error.facts}
