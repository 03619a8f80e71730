"""One region, its nodes with clocks of their own, and promises that travel: random schedules.

The world is about reads alone. Rows of a leader reach every copy that it requires at once, and a
promoted copy has all of them; the schedules of `world.py` are about how they get there.
"""

from dataclasses import dataclass, field
from random import Random

from dataplane.region.copies.leader_view import CopyName
from dataplane.region.copies.promises import CopyHere, GivenPromises, ReceivedPromises
from tests.dataplane.region.copies.promise_rules import Lead, PromiseRules

REGION = 7
STALE = "a leader answers a read without a row that was acknowledged before it began"
DRIFT_PPM = 24_000
"""Rates of clocks lie within this of the true one: two differ by less than 5 %."""
LEASE_MS, OUTWAIT_MS = 10_000, 11_500
"""A lease by the clock of the leader, and how long metasrv waits since it was granted."""


@dataclass
class Computed:
    """A read under way: the rows in its answer, and those that were acknowledged as it began."""

    rows: int
    acked: int


@dataclass
class PromiseNode:
    number: int
    rate_ppm: int
    offset_ms: int
    given: GivenPromises
    received: ReceivedPromises
    epoch: int = 1
    rows: int = 0
    lead: Lead | None = None
    read: Computed | None = None
    leased_until_ms: int = 0
    """By its own clock."""
    is_fenced: bool = False
    """Whether another has opened its root: nothing is acknowledged there any more."""
    suspended_ms: int = 0
    """The time that a clock has not counted."""

    @property
    def name(self) -> CopyName:
        return CopyName(f"dn-{self.number}", f"/{self.number}")

    @property
    def here(self) -> CopyHere:
        return CopyHere(self.name.root, self.epoch, is_leader=self.lead is not None)


@dataclass(eq=False)
class Request:
    leader: int
    copy: int
    epoch: int
    asked_ms: int
    is_answer: bool = False


@dataclass
class PromiseWorld:
    draw: Random
    rules: PromiseRules
    nodes: list[PromiseNode] = field(default_factory=list)
    real_ms: int = 100_000
    epoch: int = 1
    leader: int = 0
    in_sync: frozenset[int] = frozenset()
    acked: int = 0
    travelling: list[Request] = field(default_factory=list)
    reads: int = 0
    stale: int = 0
    promotions: int = 0
    takeovers: int = 0
    granted_ms: int = 0
    """The time at which the leader was granted a lease last."""
    granted_epoch: int = 0
    borrowed_rows: int | None = None
    """The rows in the root that is opened in a takeover; None: a copy of the set leads."""

    def local_ms(self, node: PromiseNode) -> int:
        counted_ms = self.real_ms - node.suspended_ms
        return node.offset_ms + counted_ms * (1_000_000 + node.rate_ppm) // 1_000_000

    def begin(self, count: int) -> None:
        for number in range(count):
            rate_ppm = self.draw.choice((-DRIFT_PPM, DRIFT_PPM))
            offset_ms = self.draw.randrange(1_000_000)
            node = PromiseNode(
                number, rate_ppm, offset_ms, self.rules.given(0), self.rules.received()
            )
            node.given = self.rules.given(self.local_ms(node))
            self.nodes.append(node)
        self.in_sync = frozenset(range(count))
        self.nodes[0].lead = Lead(1, self.in_sync)
        self.real_ms += 10_000

    # -- events

    def step(self) -> None:
        alone = (8, 4, 1, 3) if self.rules.shrinks_to_one else (0, 0, 0, 0)
        event = self.draw.choices(
            (
                self.pass_time,
                self.ask,
                self.arrive,
                self.lose,
                self.promote,
                self.open_promoted,
                self.write,
                self.compute,
                self.answer,
                self.restart,
                self.suspend,
                self.shrink,
                self.grow,
                self.follow,
                self.grant,
                self.leave,
                self.remove,
                self.take_over,
            ),
            weights=(24, 12, 60, 4, 3, 14, 16, 16, 16, 1, 1, 1, 12, 10, *alone),
        )[0]
        event()

    def any_node(self) -> PromiseNode:
        return self.draw.choice(self.nodes)

    def leading(self) -> tuple[PromiseNode, Lead] | None:
        leaders = [(node, node.lead) for node in self.nodes if node.lead is not None]
        return self.draw.choice(leaders) if leaders else None

    def pass_time(self) -> None:
        self.real_ms += self.draw.choice((1, 10, 30, 60, 100, 700))

    def ask(self) -> None:
        leading = self.leading()
        if leading is None:
            return
        node, lead = leading
        asked_ms = self.local_ms(node)
        for other in sorted(lead.required - {node.number}):
            request = Request(node.number, other, lead.epoch, asked_ms)
            self.travelling.append(request)
            while request in self.travelling and self.draw.random() < 0.5:
                self.arrived(request)

    def arrive(self) -> None:
        if not self.travelling:
            return
        self.arrived(self.draw.choice(self.travelling))

    def arrived(self, message: Request) -> None:
        self.travelling.remove(message)
        leader, copy = self.nodes[message.leader], self.nodes[message.copy]
        if message.is_answer:
            if leader.lead is None or leader.lead.epoch != message.epoch:
                return
            counts_ms = self.local_ms(leader) if self.rules.counts_answer else message.asked_ms
            leader.received.received(REGION, message.epoch, copy.name, counts_ms)
        elif self.rules.refusal(copy.here, copy.name.root, message.epoch) is None:
            copy.given.give(REGION, leader.name, self.local_ms(copy))
            message.is_answer = True
            self.travelling.append(message)

    def lose(self) -> None:
        if self.travelling:
            self.travelling.pop(self.draw.randrange(len(self.travelling)))

    def promote(self) -> None:
        """One route transaction: a copy of the set leads next. The former leader leaves the set, or
        stays in it where the switch was planned."""
        others = sorted(self.in_sync - {self.leader})
        if not others:
            return
        if self.draw.random() < 0.5:
            self.in_sync -= {self.leader}
        self.leader = self.draw.choice(others)
        self.epoch += 1
        self.promotions += 1

    def open_promoted(self) -> None:
        node = self.nodes[self.leader]
        if node.lead is None or node.lead.epoch < self.epoch:
            node.epoch, node.read, node.is_fenced = self.epoch, None, False
            node.leased_until_ms = 0
            if self.borrowed_rows is not None:
                node.rows, self.borrowed_rows = self.borrowed_rows, None
            node.lead = Lead(self.epoch, self.in_sync, rows=node.rows)

    def write(self) -> None:
        """Every copy that the leader requires takes the row, or it is not acknowledged."""
        leading = self.leading()
        if leading is None:
            return
        node, lead = leading
        if not self.serves(node) or node.is_fenced or not self.is_leased(node, lead):
            return
        others = [self.nodes[number] for number in lead.required - {node.number}]
        if any(copy.epoch > lead.epoch for copy in others):
            return
        for copy in others:
            self.follows(copy, lead)
            copy.rows = lead.rows + 1
        lead.rows += 1
        node.rows = lead.rows
        self.acked += 1

    def follow(self) -> None:
        """A copy hears of the leader of a higher epoch, and has all its rows when it answers."""
        leading = self.leading()
        if leading is None:
            return
        node, lead = leading
        copy = self.any_node()
        if copy is not node and copy.epoch <= lead.epoch and copy.number in lead.required:
            self.follows(copy, lead)

    def follows(self, copy: PromiseNode, lead: Lead) -> None:
        copy.epoch, copy.rows, copy.lead = lead.epoch, lead.rows, None
        lead.following |= {copy.number}

    def serves(self, node: PromiseNode) -> bool:
        if not self.rules.waits or node.lead is None:
            return True
        gave_up = self.rules.gave_up(node.lead)
        names = [other.name for other in self.nodes if other.number in gave_up]
        return node.given.has_ended(REGION, self.local_ms(node), names)

    def is_promised(self, node: PromiseNode, lead: Lead) -> bool:
        needed = self.rules.needed(lead)
        others = [self.nodes[number].name for number in needed if number != node.number]
        if not self.is_leased(node, lead):
            return False
        if not others:
            return True
        return node.received.are_valid(REGION, lead.epoch, others, self.local_ms(node))

    def is_leased(self, node: PromiseNode, lead: Lead) -> bool:
        if not self.rules.shrinks_to_one:
            return True
        return not self.rules.leased(lead) or self.local_ms(node) < node.leased_until_ms

    def grant(self) -> None:
        """A heartbeat of the leader is answered."""
        node = self.nodes[self.leader]
        if node.lead is not None and node.lead.epoch == self.epoch:
            node.leased_until_ms = self.local_ms(node) + LEASE_MS
            self.granted_ms, self.granted_epoch = self.real_ms, self.epoch

    def take_over(self) -> None:
        """A node without a copy opens the root of a leader that is alone, after its lease. One that
        was promoted and has not opened yet may follow the leader before it still."""
        others = sorted(set(range(len(self.nodes))) - {self.leader})
        has_served = self.granted_epoch == self.epoch or not self.rules.borrows_served
        if self.in_sync != {self.leader} or not has_served or self.draw.random() < 0.5:
            return
        self.real_ms = max(self.real_ms, self.granted_ms + OUTWAIT_MS)
        former, node = self.nodes[self.leader], self.nodes[self.draw.choice(others)]
        former.is_fenced = True
        self.borrowed_rows = former.rows
        self.leader, self.in_sync = node.number, frozenset({node.number})
        self.epoch += 1
        self.takeovers += 1

    def leave(self) -> None:
        """A leader asks that the only other copy leaves, and may not hear that it has."""
        lead = self.nodes[self.leader].lead
        if lead is None or lead.epoch != self.epoch or lead.joining is not None:
            return
        if lead.members == self.in_sync and len(self.in_sync) == 2:
            lead.has_asked = True
            self.in_sync = frozenset({self.leader})
            if self.draw.random() < 0.5:
                lead.members, lead.has_asked = self.in_sync, False

    def remove(self) -> None:
        """An operator removes the only other copy; the leader need not hear that it was done."""
        lead = self.nodes[self.leader].lead
        if len(self.in_sync) != 2:
            return
        if self.rules.is_told:
            if lead is None or lead.epoch != self.epoch:
                return
            lead.members, lead.has_asked = self.in_sync, True
        if self.draw.random() < 0.9:
            self.in_sync = frozenset({self.leader})

    def compute(self) -> None:
        leading = self.leading()
        if leading is None:
            return
        node, lead = leading
        if self.serves(node):
            node.read = Computed(lead.rows, self.acked)

    def answer(self) -> None:
        leading = self.leading()
        if leading is None or leading[0].read is None:
            return
        node, lead = leading
        read, node.read = node.read, None
        assert read is not None
        if self.is_promised(node, lead):
            self.reads += 1
            self.stale += read.rows < read.acked

    def restart(self) -> None:
        """A leader that starts again is opened by a new epoch only."""
        node = self.any_node()
        node.given = self.rules.given(self.local_ms(node))
        node.received, node.lead, node.read = self.rules.received(), None, None
        if node.number == self.leader and self.in_sync:
            self.epoch += 1

    def suspend(self) -> None:
        away_ms = self.draw.choice((500, 2_500))
        node = self.any_node()
        self.real_ms += away_ms
        if not self.rules.counts_suspended:
            node.suspended_ms += away_ms

    def shrink(self) -> None:
        """A copy leaves the set in the route; the leader requires it until it has read that."""
        others = sorted(self.in_sync - {self.leader})
        if len(others) < 2:
            return
        self.in_sync -= {self.draw.choice(others)}
        lead = self.nodes[self.leader].lead
        if lead is not None and lead.epoch == self.epoch and self.draw.random() < 0.5:
            lead.members, lead.joining = self.in_sync, None

    def grow(self) -> None:
        """A learner is required first, then in the route, then known to be there."""
        node = self.nodes[self.leader]
        lead = node.lead
        if lead is None or lead.epoch != self.epoch:
            return
        if lead.joining is not None:
            self.in_sync |= {lead.joining}
            if self.draw.random() < 0.5:
                lead.members, lead.joining = self.in_sync, None
            return
        if self.rules.grows_after and not self.serves(node):
            return
        outside = sorted(set(range(len(self.nodes))) - self.in_sync - lead.required)
        ready = [n for n in outside if self.nodes[n].epoch <= lead.epoch]
        if ready:
            number = self.draw.choice(ready)
            copy = self.nodes[number]
            self.follows(copy, lead)
            lead.joining = number


def lived(seed: int, rules: PromiseRules, steps: int = 1_500) -> PromiseWorld:
    """Lives until the first stale read, or that many steps."""
    world = PromiseWorld(Random(seed), rules)
    world.begin(2 + seed % 3)
    for _ in range(steps):
        world.step()
        if world.stale:
            break
    return world
