"""Nodes, a route and messages that are late, lost or twice, in the hands of a seed: the views of
leaders and copies as the product has them, and the faults of the model (G51 to G55)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from dataplane.log.records import LogPosition
from dataplane.region.copies.copy_view import CopyView, OfferedRecord
from dataplane.region.copies.history import LogHistory
from dataplane.region.copies.leader_view import CopyName, CopySet, LeaderView, OwnLog, RecordState
from metasrv_base.errors import Conflict, Corrupt

BUDGET = 3
"""Records that a copy holds in memory."""


@dataclass(frozen=True)
class Rules:
    """The views under test; a planted bug is another."""

    leader: type[LeaderView] = LeaderView
    copy: type[CopyView] = CopyView


@dataclass
class Node:
    """`log`: the position and the write of each record, on disk; the sequence is its place."""

    name: CopyName
    log: list[tuple[LogPosition, int]] = field(default_factory=list)
    epoch: int = 0
    flushed: int = 0
    is_gone: bool = False
    view: CopyView | None = None
    lead: LeaderView | None = None
    ordered: dict[int, int] = field(default_factory=dict)
    """Writes that wait to be acknowledged, by sequence."""

    def history(self) -> LogHistory:
        history = LogHistory()
        for position, _ in self.log:
            history = history.extended(position)
        return history.flushed_to(self.flushed)

    @property
    def readable(self) -> int:
        if self.lead is not None:
            return self.lead.common
        return self.flushed if self.view is None else self.view.common


@dataclass(frozen=True)
class Offer:
    to: CopyName
    epoch: int
    history: LogHistory
    common: int
    records: tuple[tuple[LogPosition, int], ...]
    by: CopyName


@dataclass(frozen=True)
class Answer:
    to: CopyName
    by: CopyName
    epoch: int
    sequence: int


@dataclass(frozen=True)
class JoinRequest:
    version: int
    epoch: int
    copy: CopyName


@dataclass(frozen=True)
class OpenOrder:
    to: CopyName
    members: CopySet


Message = Offer | Answer | JoinRequest | OpenOrder


class World:
    def __init__(self, seed: int, rules: Rules, nodes: int = 3, min_in_sync: int = 1) -> None:
        self.rules, self.min_in_sync = rules, min_in_sync
        self.random = Random(seed)
        names = [CopyName(f"dn-{number}", f"/disks/{number}/1") for number in range(nodes)]
        self.nodes = {name: Node(name) for name in names}
        first = self.random.randint(1, nodes)
        in_sync, learners = frozenset(names[:first]), frozenset(names[first:])
        self.route = CopySet(1, 1, in_sync, learners)
        self.leader = names[0]
        self.messages: list[Message] = [OpenOrder(names[0], self.route)]
        self.acked: dict[int, int] = {}
        """Sequences of acknowledged writes when they were."""
        self.writes = 0
        self.losses = 0
        self.now_ms = 0
        self.over_budget: list[CopyName] = []
        self.trace: list[str] = []

    def step(self) -> None:
        self.now_ms += self.random.choice([1, 1, 1, 4_000])
        act, weight = zip(*self._acts(), strict=True)
        (chosen,) = self.random.choices(act, weight)
        chosen()
        for node in self.nodes.values():
            self._acknowledge(node)

    def _acts(self) -> Iterator[tuple]:  # type: ignore[type-arg]
        yield self._deliver, 30
        yield self._send, 12
        yield self._write, 8
        yield self._flush, 3
        yield self._read_route, 4
        yield self._ask_to_join, 5
        yield self._shrink, 1
        yield self._promote, 1
        yield self._restart, 1
        yield self._lose_disk, 0.4
        yield self._new_root, 2

    def _leads(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.lead is not None]

    # -- records

    def _write(self) -> None:
        for node in self._leads():
            lead = node.lead
            assert lead is not None
            if lead.may_order and len(node.log) - node.flushed < BUDGET + 1:
                write = self.writes = self.writes + 1
                position = LogPosition(lead.epoch, len(node.log) + 1)
                node.log.append((position, write))
                node.ordered[position.sequence] = write
                lead.appended(position.sequence, self.now_ms)
                self.trace.append(f"{node.name.node} orders {write} at {tuple(position)}")

    def _acknowledge(self, node: Node) -> None:
        for sequence in list(node.ordered):
            assert node.lead is not None
            state = node.lead.judge(sequence)
            if state is RecordState.COUNTS:
                self.acked[node.ordered[sequence]] = sequence
                self.trace.append(f"{node.name.node} acknowledges {node.ordered[sequence]}")
            if state is not RecordState.WAITS:
                del node.ordered[sequence]

    def _send(self) -> None:
        for node in self._leads():
            lead = node.lead
            assert lead is not None
            for to in lead.receivers:
                first = self.random.randint(0, len(node.log))
                if self.random.random() < 0.8:
                    first = max(0, lead.durable_at(to))
                records = tuple(node.log[first : first + self.random.randint(1, 3)])
                history = node.history()
                self.messages.append(
                    Offer(to, lead.epoch, history, lead.common, records, node.name)
                )

    def _take(self, offer: Offer) -> None:
        node = self._living(offer.to)
        if node is None or (node.lead is not None and node.lead.epoch == offer.epoch):
            return
        view = node.view or self.rules.copy.opened(node.epoch, node.history())
        if view.epoch < offer.epoch:
            cut = view.cut_for(offer.epoch, offer.history)
            if cut is None:
                return
            del node.log[cut.sequence :]
            view.followed(offer.epoch, cut)
            self.trace.append(f"{offer.to.node} follows {offer.epoch}, cuts to {tuple(cut)}")
        offered = [OfferedRecord(position, 1) for position, _ in offer.records]
        taken = view.taken(offer.epoch, offered, BUDGET - (len(node.log) - node.flushed))
        some = [offer.records[place] for place in taken]
        node.log += some
        if some and len(node.log) - node.flushed > BUDGET:
            self.over_budget.append(offer.to)
        view.appended([position for position, _ in some])
        view.heard_common(offer.epoch, offer.common)
        node.view, node.epoch, node.lead = view, view.epoch, None
        node.ordered.clear()
        self.messages.append(Answer(offer.by, offer.to, offer.epoch, len(node.log)))

    def _flush(self) -> None:
        node = self.random.choice(list(self.nodes.values()))
        if node.flushed < node.readable and not node.is_gone:
            node.flushed = node.readable
            if node.view is not None:
                node.view.flushed(node.flushed)

    # -- the route

    def _change_route(
        self,
        in_sync: frozenset[CopyName],
        learners: frozenset[CopyName],
        left: frozenset[CopyName] = frozenset(),
    ) -> None:
        """*left*: a copy that may lead if the set is below the minimum now."""
        eligible = (self.route.eligible | left) & learners
        if len(in_sync) >= self.min_in_sync:
            eligible = frozenset()
        version = self.route.version + 1
        self.route = CopySet(version, self.route.epoch, in_sync, learners, eligible)

    def _shrink(self) -> None:
        """By the leader's word, or because metasrv does not hear a copy."""
        lead = self.nodes[self.leader].lead
        slow = lead.leaves(self.now_ms).keys() if lead is not None else set[CopyName]()
        others = sorted(self.route.in_sync - {self.leader})
        if others:
            copy = self.random.choice(sorted(slow & self.route.in_sync) or others)
            left = frozenset[CopyName]()
            if lead is not None and lead.epoch == self.route.epoch and lead.may_be_eligible(copy):
                left = frozenset({copy})
            self._change_route(self.route.in_sync - {copy}, self.route.learners | {copy}, left)
            self.trace.append(f"route {self.route.version}: {copy.node} leaves")

    def _promote(self) -> None:
        names = self.route.in_sync
        if len(names) == 1:
            names |= self.route.eligible
        living = [copy for copy in sorted(names) if not self.nodes[copy].is_gone]
        if not living:
            return
        copy, route = self.random.choice(living), self.route
        former = {self.leader} - {copy}
        in_sync, learners = route.in_sync - former | {copy}, route.learners - {copy} | former
        self.route = CopySet(route.version + 1, route.epoch + 1, in_sync, learners)
        self.leader = copy
        self.messages.append(OpenOrder(copy, self.route))
        self.trace.append(f"route {self.route.version}: {copy.node} leads {self.route.epoch}")

    def _open(self, order: OpenOrder) -> None:
        node = self._living(order.to)
        if node is None or order.members.epoch <= node.epoch:
            return
        log = OwnLog(len(node.log), node.readable)
        lead = self.rules.leader.open(node.name, order.members, self.min_in_sync, log, self.now_ms)
        node.lead, node.view, node.epoch = lead, None, order.members.epoch
        node.ordered.clear()
        self.trace.append(f"{node.name.node} opens {node.epoch} with {len(node.log)}")

    def _read_route(self) -> None:
        for node in self._leads():
            assert node.lead is not None
            try:
                node.lead.read_route(self.route, self.now_ms)
            except Conflict:
                node.lead = None
                node.ordered.clear()

    def _ask_to_join(self) -> None:
        for node in self._leads():
            assert node.lead is not None
            copy = node.lead.joins_next(serves=True)
            if copy is not None:
                version = node.lead.join(copy, self.now_ms)
                self.messages.append(JoinRequest(version, node.lead.epoch, copy))
                self.trace.append(f"{node.name.node} requires {copy.node}")

    def _grow(self, request: JoinRequest) -> None:
        route = self.route
        if (request.version, request.epoch) == (route.version, route.epoch):
            joins = {request.copy}
            self._change_route(route.in_sync | joins, route.learners - joins)
            self.trace.append(f"route {self.route.version}: {request.copy.node} joins")

    # -- failures

    def _deliver(self) -> None:
        if not self.messages:
            return
        newest = max(0, len(self.messages) - 6)
        first = newest if self.random.random() < 0.8 else 0
        number = self.random.randrange(first, len(self.messages))
        message = self.messages[number]
        if self.random.random() < 0.9 or not isinstance(message, Offer | Answer):
            del self.messages[number]
        match message:
            case Offer():
                try:
                    self._take(message)
                except Conflict:
                    return
            case Answer():
                node = self._living(message.to)
                if node is not None and node.lead is not None:
                    lead = node.lead
                    lead.acknowledged(message.by, message.epoch, message.sequence, self.now_ms)
            case JoinRequest():
                self._grow(message)
            case OpenOrder():
                self._open(message)

    def _living(self, name: CopyName) -> Node | None:
        node = self.nodes.get(name)
        return None if node is None or node.is_gone else node

    def _restart(self) -> None:
        node = self.random.choice(list(self.nodes.values()))
        node.view, node.lead = None, None
        node.ordered.clear()
        self.trace.append(f"{node.name.node} starts again")

    def _lose_disk(self) -> None:
        """One at most: what two lost disks take is no fault."""
        node = self.random.choice(list(self.nodes.values()))
        if not self.losses:
            self.losses += 1
            self.nodes[node.name] = Node(node.name, is_gone=True)
            self.trace.append(f"{node.name.node} loses its disk")

    def _new_root(self) -> None:
        for copy in self.route.learners:
            if self.nodes[copy].is_gone:
                fresh = CopyName(copy.node, f"{copy.root}+")
                del self.nodes[copy]
                self.nodes[fresh] = Node(fresh)
                learners = self.route.learners - {copy} | {fresh}
                self._change_route(self.route.in_sync, learners)
                return

    def settle(self) -> bool:
        """Nothing is late or lost any more, and the leader has sent everything. False: a disk of
        the set is lost, or the bounds of memory do not let it."""
        self.messages.clear()
        if any(self.nodes[copy].is_gone for copy in self.route.in_sync):
            return False
        self.messages.append(OpenOrder(self.leader, self.route))
        for _ in range(40):
            while self.messages:
                self._deliver()
            for node in self.nodes.values():
                self._acknowledge(node)
                if node.flushed < node.readable and not node.is_gone:
                    node.flushed = node.readable
                    if node.view is not None:
                        node.view.flushed(node.flushed)
            self._read_route()
            self._send()
        lead = self.nodes[self.leader].lead
        return lead is not None and lead.epoch == self.route.epoch

    # -- faults

    def faults(self) -> Iterator[str]:
        if self.over_budget:
            yield "a copy holds more records in memory than it may"
        may_lead = self.route.in_sync | self.route.eligible
        members = [self.nodes[copy] for copy in may_lead if copy in self.nodes]
        living = [node for node in members if not node.is_gone]
        for node in living:
            if self.acked.keys() - {write for _, write in node.log}:
                yield "a copy that may be promoted lacks an acknowledged row"
        writes = {write for node in self.nodes.values() for _, write in node.log}
        if self.losses <= 1 < self.min_in_sync and self.acked.keys() - writes:
            yield "one disk was lost, and with it the only copy of an acknowledged row"
        for node in self.nodes.values():
            if not node.is_gone:
                yield from self._faults_of(node, living)

    def _faults_of(self, node: Node, living: list[Node]) -> Iterator[str]:
        for other in living:
            if node.log[: node.flushed] != other.log[: node.flushed]:
                yield "a file holds a row that can be cut back"
            if node.log[: node.readable] != other.log[: node.readable]:
                yield "a row is readable that can be cut back"
        lead = node.lead
        is_current = lead is not None and lead.epoch == self.route.epoch
        if lead is not None and is_current and lead.may_read:
            readable = {write for _, write in node.log[: lead.common]}
            if self.acked.keys() - readable:
                yield "a leader answers a read without an acknowledged row"


def live(seed: int, rules: Rules, steps: int = 200, **bounds: int) -> tuple[World, str | None]:
    """The world after the first step with a fault, or after all."""
    world = World(seed, rules, **bounds)
    for _ in range(steps):
        try:
            world.step()
        except Corrupt as error:
            return world, f"a copy finds a contradiction: {error}"
        fault = next(world.faults(), None)
        if fault is not None:
            return world, fault
    return world, None
