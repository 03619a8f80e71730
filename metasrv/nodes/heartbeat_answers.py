"""Answers to heartbeats: grants of leases, and instructions.

A node most often reports what it did before, of a catalog that is as before. Then it is granted by
one number what it was granted before; else each of its regions is looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypedDict, Unpack

from keys.catalog.follower import Follower
from metasrv.nodes.heartbeats.instruction_window import InstructionWindow
from metasrv.nodes.heartbeats.reconcile import Reported, reconcile
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv.nodes.heartbeats.standing_answer import Basis, StandingAnswer
from metasrv.nodes.lease_table import LeaseTable
from metasrv.nodes.status import NodeEntry
from metasrv_base.clock import Clock
from metasrv_base.concurrency.turns import Turns
from metasrv_base.wire.node.nodes import Grant, HeartbeatAnswer, HeartbeatRequest
from metasrv_base.wire.node.orders import Order


class AnswerFacts(TypedDict, total=False):
    """Fields of a HeartbeatAnswer."""

    grants: list[Grant]
    renews: int
    is_kept: bool
    wants_whole: bool
    instructions: list[Order]


class MakeAnswer(Protocol):
    def __call__(self, sequence: int, **facts: Unpack[AnswerFacts]) -> HeartbeatAnswer: ...


@dataclass(frozen=True, slots=True)
class HeartbeatAnswers:
    """The parts of a term that answer heartbeats."""

    follower: Follower
    leases: LeaseTable
    clock: Clock
    is_busy: Callable[[int], bool]
    """Whether a living procedure holds the locks of a table id."""
    completed: Callable[[Order], Order]
    """Gives an order its number."""
    make: MakeAnswer
    is_known: Callable[[NodeEntry], bool]
    """Whether the entry is the one of its node."""

    def answer(
        self, entry: NodeEntry, request: HeartbeatRequest, report: RegionReport
    ) -> Turns[HeartbeatAnswer]:
        """Answers the newest heartbeat of a node, whose *report* is noted. One that is not the
        newest any more, at a turn, grants nothing."""
        basis = self._basis(entry, report)
        standing = entry.standing
        if (
            standing is not None
            and standing.sequence == request.granted_by
            and standing.basis.is_same_as(basis)
            and self.leases.renew(request.node_id, standing.since_ms, self.clock.mono_ms())
        ):
            return self.make(request.sequence, renews=standing.sequence, is_kept=True)
        return (yield from self._reconciled(entry, request, basis))

    def _basis(self, entry: NodeEntry, report: RegionReport) -> Basis:
        return Basis(self.follower.catalog.nodes.get(entry.node.node_id), report, entry.node)

    def _reconciled(
        self, entry: NodeEntry, request: HeartbeatRequest, basis: Basis
    ) -> Turns[HeartbeatAnswer]:
        """Looks at each region of the node."""
        report, since_ms = basis.report, self.clock.mono_ms()
        is_settled = is_kept = entry.kept is not None
        grants, orders = list[Grant](), list[Order]()
        window = InstructionWindow(entry.instructions_from)
        for part in reconcile(
            lambda: self.follower.catalog,
            Reported(request.node_id, report, may_drop=entry.node.returned is None),
            self.is_busy,
            window,
        ):
            granted = [grant.region_id for grant in part.grants]
            self.leases.granted(request.node_id, granted, self.clock.mono_ms())
            grants += part.grants
            orders += map(self.completed, part.instructions)
            is_settled = is_settled and part.is_settled
            yield
            if not self._is_newest(entry, request):
                return self.make(request.sequence)
        if is_kept and request.changes_since is None:
            for _ in report.digested():
                yield
                if not self._is_newest(entry, request):
                    return self.make(request.sequence)
        entry.instructions_from = window.following
        is_settled = is_settled and basis.is_same_as(self._basis(entry, report))
        entry.standing = StandingAnswer(request.sequence, since_ms, basis) if is_settled else None
        return self.make(request.sequence, grants=grants, instructions=orders, is_kept=is_kept)

    def _is_newest(self, entry: NodeEntry, request: HeartbeatRequest) -> bool:
        return self.is_known(entry) and entry.sequence == request.sequence
