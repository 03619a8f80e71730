"""Answers leaders that ask the copies of this node for promises (docs/protocols.md P4.5)."""

from collections import Counter

from dataplane.datanode.promises.shared_regions import PromisePorts
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.copies.promises import PROMISE_MS, refusal
from dataplane.region.copies.staleness import CommonAt
from metasrv_base.errors import Conflict
from metasrv_base.wire.node.promises import (
    AnswerTime,
    PromiseAnswer,
    PromiseRequest,
    RefusedPromise,
)
from metasrv_base.wire.node.silences import LeaderHeard

PRUNE_MS = 10_000


class PromiseDesk:
    """No await between the judgement of a copy and its promise: an order to lead comes before both,
    or behind both."""

    def __init__(self, ports: PromisePorts) -> None:
        self._ports = ports
        self._given = ports.regions.promises.given
        self._pruned_ms = self._given.started_ms

    def answer(self, request: PromiseRequest) -> PromiseAnswer:
        """Raises Conflict `wrong-cluster` for a request to another cluster, or to another node."""
        me = self._ports.membership
        if me.cluster_id is None or request.cluster_id != me.cluster_id:
            raise Conflict("wrong-cluster", expected=me.cluster_id, found=request.cluster_id)
        if request.node_id != me.identity.node_id:
            raise Conflict("wrong-cluster", expected=me.identity.node_id, found=request.node_id)
        self._ports.silence.note_request(request.leader, self._ports.clock.mono_ms())
        now_ms, refused = self._ports.clock.mono_ms(), list[RefusedPromise]()
        outcomes = Counter[str]()
        as_of_ms = self._as_of_ms(request, now_ms)
        common = request.common or [None] * len(request.region_id)
        columns = (request.region_id, request.epoch, request.root, request.led_root, common)
        for region_id, epoch, root, led_root, sequence in zip(*columns, strict=True):
            here = self._ports.regions.copy_here(int(region_id))
            reason = refusal(here, root, epoch)
            if reason is None:
                self._given.give(int(region_id), CopyName(request.leader, led_root), now_ms)
                if as_of_ms is not None and sequence is not None:
                    position = CommonAt(epoch, sequence, as_of_ms)
                    self._tell(int(region_id), root, position)
            else:
                own = 0 if here is None else here.epoch
                refused.append(RefusedPromise(region_id=region_id, reason=reason, epoch=own))
            outcomes[reason or "given"] += 1
        for outcome, number in outcomes.items():
            self._ports.count(outcome, number)
        if now_ms - self._pruned_ms >= PRUNE_MS:
            self._given.prune(now_ms)
            self._pruned_ms = now_ms
        answered = AnswerTime(incarnation=me.identity.incarnation, mono_ms=now_ms)
        return PromiseAnswer(promise_ms=PROMISE_MS, refused=refused, answered=answered)

    def _as_of_ms(self, request: PromiseRequest, now_ms: int) -> int | None:
        """The time, by the clock of this process, after which the request was made. None: it does
        not say one of this process."""
        answered = request.answered
        own = self._ports.membership.identity.incarnation
        if answered is None or answered.incarnation != own or answered.mono_ms > now_ms:
            return None
        return answered.mono_ms

    def _tell(self, region_id: int, root: str, position: CommonAt) -> None:
        if self._ports.positions is not None:
            self._ports.positions.tell(region_id, root, position)

    def silence_of(self, leader: str) -> LeaderHeard:
        """Whether the leader asks this node."""
        now_ms = self._ports.clock.mono_ms()
        return LeaderHeard(silent_ms=self._ports.silence.silent_ms(leader, now_ms))
