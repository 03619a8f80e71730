"""Asks the copies of the regions that this node leads for their promises (docs/protocols.md P4.5).

One request to each node at a time, for all regions that the two share, every ASK_MS: so two answers
may be lost before a read waits. What a node does not answer costs the others nothing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import structlog

from dataplane.datanode.promises.shared_regions import PromisedRegion, PromisePorts
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.copies.promises import ASK_MS
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.promises import (
    PROMISE_REGIONS_MAX,
    AnswerTime,
    PromiseAnswer,
    PromiseRequest,
)

LOOK_MS = 25
"""The interval at which regions are looked for that have become readable: reads of them wait for
their first promises."""
TRY_MS = 900
"""The time for which an answer is waited for. Two tries fit in the length of a promise."""

log = structlog.get_logger()


class PromisePeers(Protocol):
    """Other nodes as this one asks them. Raises the five errors."""

    async def ask(
        self, address: str, request: PromiseRequest, deadline_ms: int
    ) -> PromiseAnswer: ...


class NeededPromise(NamedTuple):
    region: PromisedRegion
    copy: CopyName
    led_root: str
    """Root of the copy that leads, on this node."""

    @property
    def region_id(self) -> int:
        return self.region.region_id

    @property
    def epoch(self) -> int:
        return self.region.view.epoch


@dataclass(frozen=True, slots=True)
class PeerQuestion:
    """The promises that are asked of one node."""

    node: str
    address: str
    needed: Sequence[NeededPromise]


class PromiseAsker:
    """`run` asks for ever."""

    def __init__(self, ports: PromisePorts, peers: PromisePeers) -> None:
        self._ports = ports
        self._received = ports.regions.promises.received
        self._peers = peers
        self._asking: set[str] = set()
        self._silent: set[str] = set()
        """Nodes that did not answer the last request."""
        self._answered: dict[str, AnswerTime] = {}
        """The last answer of each node that is asked, by its own clock."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._ports.regions.promises.awake.now_ms()
                for question in self.due():
                    self._asking.add(question.node)
                    tasks.create_task(self._ask_and_leave(question))
                await self._rest()

    async def _rest(self) -> None:
        """Until the next questions are due, or a region has just become readable."""
        promises, clock = self._ports.regions.promises, self._ports.clock
        opened, until_ms = promises.openings, clock.mono_ms() + ASK_MS
        while promises.openings == opened and (left_ms := until_ms - clock.mono_ms()) > 0:
            await clock.sleep_ms(min(LOOK_MS, left_ms))

    def due(self) -> list[PeerQuestion]:
        """The questions to ask now: none to a node that has not answered the last one yet, nor to
        one whose address is not known."""
        needed, addresses = defaultdict[str, list[NeededPromise]](list), dict[str, str]()
        led = list(self._ports.regions.led())
        self._received.keep([(region.region_id, region.view.epoch) for region in led])
        for region in led:
            view, urls = region.view, region.receivers
            for copy in sorted(view.required - {view.name}):
                address = urls.get(copy)
                if address is not None and copy.node not in self._asking:
                    promise = NeededPromise(region, copy, view.name.root)
                    needed[copy.node].append(promise)
                    addresses[copy.node] = address
        peers = needed.keys() | self._asking
        self._silent &= peers
        for gone in self._answered.keys() - peers:
            del self._answered[gone]
        return [PeerQuestion(node, addresses[node], needed[node]) for node in sorted(needed)]

    async def ask(self, question: PeerQuestion) -> None:
        """Asks for the promises of one node, in several requests if they are very many."""
        for needed in _requests(question.needed):
            await self._ask_some(question, needed)

    async def _ask_and_leave(self, question: PeerQuestion) -> None:
        try:
            await self.ask(question)
        finally:
            self._asking.discard(question.node)

    async def _ask_some(self, question: PeerQuestion, needed: Sequence[NeededPromise]) -> None:
        me, node = self._ports.membership, question.node
        if me.cluster_id is None:
            return
        request = PromiseRequest(
            cluster_id=me.cluster_id,
            leader=me.identity.node_id,
            node_id=node,
            region_id=[str(each.region_id) for each in needed],
            epoch=[each.epoch for each in needed],
            root=[each.copy.root for each in needed],
            led_root=[each.led_root for each in needed],
            **self._told(node, needed),
        )
        asked_ms = self._ports.clock.mono_ms()  # before it is sent: the promise counts from here
        try:
            answer = await self._peers.ask(question.address, request, TRY_MS)
        except MetaError as error:
            self._ports.count("unanswered", len(needed))
            if node not in self._silent:
                self._silent.add(node)
                log.info("promises_unanswered", node=node, code=error.code, regions=len(needed))
            return
        if node in self._silent:
            self._silent.discard(node)
            log.info("promises_answered", node=node, regions=len(needed))
        if answer.answered is not None:
            self._answered[node] = answer.answered
        refused = {each.region_id for each in answer.refused}
        for each in needed:
            if str(each.region_id) not in refused:
                each.region.note_answer(each.copy)
                self._received.received(
                    each.region_id, each.epoch, each.copy, asked_ms, answer.promise_ms
                )
        self._ports.count("refused", len(refused))
        self._ports.count("received", len(needed) - len(refused))

    def _told(self, node: str, needed: Sequence[NeededPromise]) -> Mapping[str, Any]:
        """The positions that a request tells: of now, which is after the last answer of the node
        came here. Nothing that was acknowledged before that answer is above them (P4.6)."""
        answered, positions = self._answered.get(node), self._ports.positions
        if answered is None or positions is None:
            return {}
        common = [positions.common_of(each.region_id, each.epoch) for each in needed]
        return {"common": common, "answered": answered}


def _requests(needed: Sequence[NeededPromise]) -> Iterator[Sequence[NeededPromise]]:
    for first in range(0, len(needed), PROMISE_REGIONS_MAX):
        yield needed[first : first + PROMISE_REGIONS_MAX]
