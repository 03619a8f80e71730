"""The nodes as this term knows them: registrations in the store, reports in memory."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Unpack

import structlog

from keys.catalog.follower import Follower
from keys.commit.committer import Committer
from keys.model.cluster import (
    Candidate,
    CandidateKey,
    Cordon,
    NodeRecord,
    Removal,
    RemovedNode,
)
from keys.store.kv import Kv
from keys.store.readable import Tell, readable, skip_silently
from keys.store.scan import scan
from metasrv.nodes.copy_addresses import with_addresses
from metasrv.nodes.detector import PhiConfig, PhiDetector
from metasrv.nodes.heartbeat_answers import AnswerFacts, HeartbeatAnswers
from metasrv.nodes.heartbeats.region_report import report_of
from metasrv.nodes.lease_table import LeaseTable
from metasrv.nodes.registry import NodeRegistry, must_speak_for, relabelled
from metasrv.nodes.status import (
    GONE,
    HeldBack,
    NodeEntry,
    NodeStatus,
    state_at,
    status_of,
    status_of_removed,
)
from metasrv.settings.settings import SettingsStore
from metasrv_base.address_book import AddressBook
from metasrv_base.clock import Clock
from metasrv_base.concurrency.turns import Turns, at_once
from metasrv_base.errors import Conflict, NotFound, Unavailable
from metasrv_base.wire.node.nodes import (
    KEEPS_REPORTS,
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.orders import Order, ServingOrder
from metasrv_base.wire.node.silences import NodeRequest
from procedures.dry_run.estimates import RegionSize
from procedures.ports import NodeView

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class HeartbeatTiming:
    """Settings of one cluster, in ms; their relations are checked at start
    (metasrv/program/config.py).
    """

    heartbeat_ms: int
    lease_ms: int
    store_deadline_ms: int


@dataclass(slots=True)
class NodeLiveness:
    cluster_id: str
    kv: Kv
    committer: Committer
    follower: Follower
    clock: Clock
    leases: LeaseTable
    settings: SettingsStore
    timing: HeartbeatTiming
    phi: PhiConfig
    next_order: Callable[[], int]
    """Order numbers, rising within the term."""
    is_busy: Callable[[int], bool]
    """Whether a living procedure holds the locks of a table id."""
    restored_from: str | None = None
    """The cluster from whose backup this one was restored; None: it was not. A node of that one is
    asked to wait until it is adopted."""
    held: Mapping[str, HeldBack] = field(default_factory=dict)
    """Dead nodes whose failover is held back, by id; the supervisor says so."""
    _entries: dict[str, NodeEntry] = field(default_factory=dict)
    _addresses: AddressBook = field(default_factory=AddressBook)
    _removed: dict[str, RemovedNode] = field(default_factory=dict)
    _registry: NodeRegistry = field(init=False)
    _answers: HeartbeatAnswers = field(init=False)

    def __post_init__(self) -> None:
        deadline_ms = self.timing.store_deadline_ms
        self._registry = NodeRegistry(self.kv, self.committer, self.clock, deadline_ms)
        self._answers = HeartbeatAnswers(
            self.follower,
            self.leases,
            self.clock,
            self.is_busy,
            self._completed,
            self._answer,
            lambda entry: self._entries.get(entry.node.node_id) is entry,
        )

    async def load(self, tell: Tell = skip_silently) -> None:
        """Loads the registered and the removed nodes, except those that cannot be read.

        Every node counts as alive at first: nothing has had time yet to tell this leader otherwise.
        """
        for node in await self._registry.nodes(tell):
            self._entries[node.node_id] = self._fresh(node)
            self._addresses.set(node.node_id, node.address)
        for removed in await self._registry.removed(tell):
            self._removed[removed.node.node_id] = removed

    # Registration and heartbeats ----------------------------------------------------------------

    async def register(self, request: RegisterRequest, by: str | None = None) -> RegisterAnswer:
        """Durable when it returns. Of two processes with one id the newest registered is heard.

        *by*: as in `must_speak_for`. Raises Conflict("node-removed") to a process whose node was
        removed while it ran, Conflict("stale-incarnation") if another one was registered
        meanwhile, Refused("node-bound").
        """
        self._same_cluster(request.node_id, request.cluster_id or self.cluster_id)
        entry = self._entries.get(request.node_id)
        if entry is not None:
            must_speak_for(entry.node, by)
        if entry is None or entry.node.incarnation != request.incarnation:
            await self._store(request, by)
        return RegisterAnswer(
            cluster_id=self.cluster_id,
            term=self.committer.term,
            heartbeat_ms=self.timing.heartbeat_ms,
            lease_ms=self.timing.lease_ms,
            settings_version=self.settings.version,
            metasrvs=await self._metasrvs(),
        )

    async def _metasrvs(self) -> list[str]:
        items, _ = await scan(
            self.kv, CandidateKey.under(), deadline_ms=self.timing.store_deadline_ms
        )
        return [row.value.url for row in readable(CandidateKey, Candidate, items, skip_silently)]

    async def _store(self, request: RegisterRequest, by: str | None) -> None:
        stored = await self._registry.enrol(request, by)
        if self._removed.pop(request.node_id, None) is not None:
            assert stored.returned is not None
            folders = stored.returned.folder_count
            log.warning("node_returned", node=request.node_id, folders=folders)
        entry = self._fresh(stored)
        entry.resources = request.resources
        before = self._entries.get(request.node_id)
        self._entries[request.node_id] = entry
        self._addresses.set(request.node_id, stored.address)
        entry.has_registered, entry.is_met = True, before is None
        if before is not None:
            entry.succeeds(before, self.clock.mono_ms())
            self._came_back(entry)
        log.info("node_registered", node=request.node_id, incarnation=request.incarnation)

    async def remove(
        self, node_id: str, removal: Removal, may_go: Callable[[], bool] = lambda: True
    ) -> None:
        """Raises as `NodeRegistry.remove`."""
        removed = await self._registry.remove(node_id, removal, may_go)
        self._forget(removed)

    async def reload(self, node: str) -> None:
        """Forgets a node whose registration a procedure has deleted (the Placement port). A process
        that has registered meanwhile stays."""
        before = self._entries.get(node)
        removed = await self._registry.removed_node(node)
        if removed is not None and before is not None and self._entries.get(node) is before:
            self._forget(removed)

    def _forget(self, removed: RemovedNode) -> None:
        node, removal = removed.node.node_id, removed.removal
        self._entries.pop(node, None)
        self._addresses.set(node, None)
        self._removed[node] = removed
        log.warning(
            "node_removed", node=node, by=removal.by, reason=removal.reason, lost=removal.lost
        )

    async def set_dead_since(self, node_id: str, at_ms: int | None) -> None:
        """Durable when it returns. Raises NotFound, and as `NodeRegistry.write`."""
        await self._change(node_id, {"dead_since_ms": at_ms})

    async def set_cordon(self, node_id: str, cordon: Cordon | None) -> None:
        """Durable when it returns. Raises NotFound, and as `NodeRegistry.write`."""

        await self._change(node_id, {"cordon": cordon})
        log.info("node_cordon_changed", node=node_id, is_cordoned=cordon is not None)

    async def set_labels(self, node_id: str, labels: Mapping[str, str | None]) -> None:
        """Changes the labels that are named; None removes one. Durable when it returns. Raises
        NotFound, as `relabelled`, and as `NodeRegistry.write`."""
        await self._rewrite(node_id, lambda old: relabelled(old, labels))
        log.info("node_labels_changed", node=node_id, labels=self.entry(node_id).node.labels)

    async def release(self, node_id: str) -> None:
        """Ends the quarantine of a node that was removed and has returned. Durable when it returns.
        Raises NotFound, and as `NodeRegistry.write`."""
        await self._change(node_id, {"returned": None})

    async def adopted(self, node_id: str, update: Mapping[str, object]) -> None:
        """Durable when it returns: the node belongs to this cluster. Raises NotFound, and as
        `NodeRegistry.write`."""
        await self._change(node_id, {"restored_from": None, **update})
        log.info("node_adopted", node=node_id, restored_from=self.restored_from)

    async def set_principal(self, node_id: str, principal: str) -> None:
        """Durable when it returns. Raises NotFound, and as `NodeRegistry.write`."""
        await self._change(node_id, {"principal": principal})
        log.warning("node_rebound", node=node_id, principal=principal)

    async def _change(self, node_id: str, update: Mapping[str, object]) -> None:
        await self._rewrite(node_id, lambda old: old.model_copy(update=update))

    async def _rewrite(self, node_id: str, change: Callable[[NodeRecord], NodeRecord]) -> None:
        def changed(old: NodeRecord | None, removed: RemovedNode | None) -> NodeRecord:
            if old is None:
                raise NotFound(what="node", name=node_id)
            return change(old)

        node = await self._registry.write(node_id, changed)
        self.entry(node_id).node = node

    def sender_of(self, request: NodeRequest, by: str | None) -> NodeEntry:
        """The node whose running process sends the message. Raises NotFound,
        Conflict("wrong-cluster"), Conflict("stale-incarnation"), Refused("node-bound")."""
        self._same_cluster(request.node_id, request.cluster_id)
        entry = self.entry(request.node_id)
        must_speak_for(entry.node, by)
        if entry.node.incarnation != request.incarnation:
            raise Conflict("stale-incarnation", node=request.node_id)
        return entry

    def heartbeat(self, request: HeartbeatRequest, by: str | None = None) -> HeartbeatAnswer:
        """Handles a heartbeat as `hear` does, without yielding."""
        return at_once(self.hear(request, by))

    def hear(self, request: HeartbeatRequest, by: str | None = None) -> Turns[HeartbeatAnswer]:
        """Grants leases and says what is to be done. One that is not newer is ignored (G41), also
        when the newer one comes between two turns.

        A lease is counted from the turn that grants it, which is after the node sent this and at
        the catalog of that moment: a failover that begins later waits for its end.
        *by*: as in `must_speak_for`. Raises as `sender_of`.
        """
        entry = self.sender_of(request, by)
        if request.sequence <= entry.sequence:
            return self._answer(request.sequence)
        if entry.hears(request.sequence, self.clock.mono_ms()):
            self._came_back(entry)
        entry.resources, entry.refused = request.resources, request.refused
        report = report_of(request, entry.kept)
        if report is None:
            log.info("heartbeat_changes_refused", node=request.node_id)
            return self._answer(request.sequence, wants_whole=True)
        entry.takes(report)
        entry.kept = None if request.format < KEEPS_REPORTS else (request.sequence, report)
        answer = yield from self._answers.answer(entry, request, report)
        if request.addresses_digest in (None, self._addresses.digest):
            return answer
        return answer.model_copy(update={"addresses": self._addresses.urls})

    def _completed(self, order: Order) -> Order:
        """An instruction with its number, and with the addresses of the copies that it names."""
        update: dict[str, object] = {"number": self.next_order()}
        if isinstance(order, ServingOrder) and order.copies is not None:
            update["copies"] = with_addresses(order.copies, self.address_of)
        return order.model_copy(update=update)

    def _answer(self, sequence: int, **facts: Unpack[AnswerFacts]) -> HeartbeatAnswer:
        """An answer that grants and orders nothing, but for *facts*."""
        return HeartbeatAnswer(
            sequence=sequence,
            term=self.committer.term,
            lease_ms=self.timing.lease_ms,
            settings_version=self.settings.version,
            catalog_version=self.follower.catalog.version,
            **facts,
        )

    def _came_back(self, entry: NodeEntry) -> None:
        tuned = self.settings.values
        window_ms, limit = tuned.flapping_window_ms, tuned.flapping_returns
        if entry.returns.came_back(self.clock.mono_ms(), window_ms=window_ms, limit=limit):
            node = entry.node.node_id
            log.warning("node_flapping", node=node, returns=limit, window_ms=window_ms)

    def _same_cluster(self, node_id: str, cluster_id: str) -> None:
        """A node that may still be adopted is asked to wait, and does not end."""
        if cluster_id == self.restored_from:
            what = f"node {node_id}, which is not adopted yet (metasrv node adopt {node_id}),"
            raise Unavailable("not-ready", what=what)
        if cluster_id != self.cluster_id:
            raise Conflict("wrong-cluster", expected=self.cluster_id, found=cluster_id)

    def _fresh(self, node: NodeRecord) -> NodeEntry:
        return NodeEntry(node, PhiDetector(self.phi, self.clock.mono_ms()))

    # Asking -------------------------------------------------------------------------------------

    def registered(self) -> tuple[NodeRecord, ...]:
        return tuple(self._entries[node].node for node in sorted(self._entries))

    def entry(self, node_id: str) -> NodeEntry:
        """Raises NotFound for a node that never registered."""
        entry = self._entries.get(node_id)
        if entry is None:
            raise NotFound(what="node", name=node_id)
        return entry

    def address_of(self, node_id: str) -> str | None:
        """The URL of a node; None for one that is not registered."""
        return self._addresses.get(node_id)

    def node(self, node_id: str) -> NodeStatus:
        """A removed one too. Raises NotFound."""
        if node_id not in self._entries and node_id in self._removed:
            return status_of_removed(self._removed[node_id])
        now = self.clock.mono_ms()
        entry = self.entry(node_id)
        status = status_of(entry, self.leases.node_free_at_ms(node_id), now)
        held = self.held.get(node_id)
        return status if held is None else replace(status, held=held)

    def statuses(self) -> tuple[NodeStatus, ...]:
        return tuple(self.node(node_id) for node_id in sorted(self._entries))

    def nodes(self) -> tuple[NodeView, ...]:
        """The Placement port. Every change is judged by it, so it looks at no region."""
        now, catalog = self.clock.mono_ms(), self.follower.catalog
        return tuple(
            NodeView(
                node_id=node_id,
                zone=entry.node.zone,
                root=entry.node.root,
                alive=state_at(entry, now) not in GONE and entry.node.restored_from is None,
                regions=catalog.held_by(node_id),
                disk_free_bytes=_disk_free(entry),
                cordoned=entry.node.cordon is not None,
                engines=entry.node.engines,
                cpu_cores=entry.node.resources.cpu_cores,
                memory_bytes=entry.node.resources.memory_bytes,
                labels=entry.node.labels,
                restarted=entry.restarted,
                lost=entry.lost,
                answers=entry.answers_orders(now),
            )
            for node_id, entry in sorted(self._entries.items())
        )

    def size_of(self, node: str, region_id: str) -> RegionSize | None:
        """The size of a region as *node* last reported it; None: it has not, to this leader."""
        entry = self._entries.get(node)
        stat = entry and entry.regions.get(region_id)
        return RegionSize(stat.rows, stat.bytes) if stat else None

    def refused(self) -> Mapping[tuple[int, str | None], int]:
        """Requests that regions refused as below their floors, by table id and holder, as all nodes
        last reported them."""
        counts = Counter[tuple[int, str | None]]()
        for entry in self._entries.values():
            counts.update(
                {(refusal.table_id, refusal.holder_id): refusal.count for refusal in entry.refused}
            )
        return counts

    def free_in_ms(self, node: str, region_ids: Sequence[str]) -> int:
        """The Leases port."""
        return max(0, self.leases.free_at_ms(node, region_ids) - self.clock.mono_ms())

    def suspect_from(self, threshold: float) -> None:
        """Sets another phi from which on nodes count as dead."""
        self.phi = replace(self.phi, threshold=threshold)
        for entry in self._entries.values():
            entry.detector.config = self.phi

    def forgive(self, stalled_ms: int) -> None:
        """Excuses *stalled_ms* in which this server did not run: that is no node's fault (G35)."""
        now = self.clock.mono_ms()
        for entry in self._entries.values():
            entry.detector.forgive(stalled_ms, now)


def _disk_free(entry: NodeEntry) -> int:
    """Free bytes as last reported; before the first report of this term, the whole disk."""
    reported = entry.resources
    return reported.disk_free_bytes if reported else entry.node.resources.disk_bytes
