"""Senders of records to copies: one for each node that has copies of regions that this one leads.

A sender has one request in flight, with the records of all regions that are due, so its memory and
the load of its peer are bounded; what was not acknowledged is sent again, byte for byte.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.ports import Spawn
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.following.append_body import PARTS_MAX, AppendPart, encode_append
from dataplane.region.following.copy_region import StreamedRecords
from metasrv_base.clock import Clock
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Corrupt, MetaError
from metasrv_base.wire.node.appends import AppendAnswer
from metasrv_base.wire.problem.problems import node_error

REQUEST_BYTES = 8 << 20
"""Records of one request; those of a region that do not fit go by the next."""
LATER = Backoff(first_ms=20, max_ms=1_000)
"""The pause before records are sent again that a copy, or its node, has not taken."""
TELL_MS = 50
"""The time for which a copy that has all records is not told that they are common: the next records
say it too, and one that is written to costs no second request for each write."""
IDLE_MS = 30_000
"""A sender without work ends."""

log = structlog.get_logger()


class AppendPort(Protocol):
    """The node of a copy. Raises the five errors."""

    async def append(self, address: str, body: bytes) -> AppendAnswer: ...


class CopySenders:
    """The senders of this node, by the peer's id and address."""

    def __init__(self, port: AppendPort, clock: Clock, spawn: Spawn) -> None:
        self._port, self._clock, self._spawn = port, clock, spawn
        self._senders: dict[tuple[str, str], PeerSender] = {}

    def notify(self, led: LedRegion) -> None:
        """Wakes the senders of the copies that are due."""
        for copy, address in led.receivers.items():
            if address is None or not led.is_due(copy):
                continue
            peer = (copy.node, address)
            if peer not in self._senders:
                sender = PeerSender(address, self._port, self._clock)
                self._senders[peer] = sender
                self._spawn(self._run(peer, sender))
            self._senders[peer].mark(led, copy)

    def close(self) -> None:
        for sender in list(self._senders.values()):
            sender.stop()

    async def _run(self, peer: tuple[str, str], sender: "PeerSender") -> None:
        try:
            await sender.run()
        finally:
            del self._senders[peer]


@dataclass(frozen=True, slots=True)
class Sent:
    led: LedRegion
    copy: CopyName
    records: StreamedRecords


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    sent: Sequence[Sent]
    body: bytes
    unread: Sequence[tuple[LedRegion, CopyName, MetaError]]
    """Regions whose logs could not be read."""

    @property
    def count(self) -> int:
        """Regions of the batch that were looked at."""
        return len(self.sent) + len(self.unread)


class PeerSender:
    """Sends to one node until it has been idle for a while."""

    def __init__(self, address: str, port: AppendPort, clock: Clock) -> None:
        self._address, self._port, self._clock = address, port, clock
        self._due: dict[tuple[int, CopyName], LedRegion] = {}
        self._failures: dict[tuple[int, CopyName], int] = {}
        """Requests in a row that a copy took nothing of, and the time before which it rests."""
        self._rests_ms: dict[tuple[int, CopyName], int] = {}
        self._tells_ms: dict[tuple[int, CopyName], int] = {}
        """The time from which a copy is told what is common, if there are no records to send."""
        self._peer_failures = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Ends `run`; what is under way is given up."""
        if self._task is not None:
            self._task.cancel()

    def mark(self, led: LedRegion, copy: CopyName) -> None:
        self._due[led.region_id, copy] = led
        self._wake.set()

    async def run(self) -> None:
        self._task, idle_ms = asyncio.current_task(), 0
        while idle_ms < IDLE_MS or self._due:
            batch = self._ready()
            if batch:
                idle_ms = 0
                await self._send(batch)
                continue
            self._wake.clear()
            pause_ms = min([IDLE_MS, *self._rests_of_due()])
            try:
                async with asyncio.timeout(pause_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                idle_ms += pause_ms

    def _rests_of_due(self) -> Sequence[int]:
        now_ms = self._clock.mono_ms()
        return [
            max(1, self._starts_ms(key, led, now_ms) - now_ms) for key, led in self._due.items()
        ]

    def _starts_ms(self, key: tuple[int, CopyName], led: LedRegion, now_ms: int) -> int:
        """The time from which the copy may be sent what is due."""
        if led.has_records_for(key[1]):
            self._tells_ms.pop(key, None)
            return self._rests_ms.get(key, now_ms)
        tell_ms = self._tells_ms.setdefault(key, now_ms + TELL_MS)
        return max(tell_ms, self._rests_ms.get(key, now_ms))

    def _ready(self) -> list[tuple[LedRegion, CopyName]]:
        """The regions whose records may be sent now, at most PARTS_MAX."""
        now_ms = self._clock.mono_ms()
        ready: list[tuple[LedRegion, CopyName]] = []
        for key, led in list(self._due.items()):
            if not led.is_due(key[1]) or led.address_of(key[1]) != self._address:
                self._forget(key)
            elif self._starts_ms(key, led, now_ms) <= now_ms and len(ready) < PARTS_MAX:
                del self._due[key]
                self._tells_ms.pop(key, None)
                ready.append((led, key[1]))
        return ready

    def _forget(self, key: tuple[int, CopyName]) -> None:
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._rests_ms.pop(key, None)
        self._tells_ms.pop(key, None)

    async def _send(self, batch: Sequence[tuple[LedRegion, CopyName]]) -> None:
        request = await asyncio.to_thread(encoded, batch)
        for led, copy in batch[request.count :]:
            self.mark(led, copy)
        for led, copy, error in request.unread:
            log.info("copy_records_unread", region_id=led.region_id, code=error.code)
            self._settle(led, copy, has_moved=False)
        if request.sent:
            await self._send_encoded(request.sent, request.body)

    async def _send_encoded(self, sent: Sequence[Sent], body: bytes) -> None:
        try:
            answer = await self._port.append(self._address, body)
            if len(answer.parts) != len(sent):
                raise Corrupt(address=self._address, parts=len(answer.parts), expected=len(sent))
        except MetaError as error:
            self._failed(sent, error)
            return
        self._peer_failures = 0
        for each, part in zip(sent, answer.parts, strict=True):
            has_moved = False
            if part.error is not None:
                refusal = node_error(part.error.code, part.error.facts)
                each.led.refused(refusal)
                log.info("copy_refused", region_id=each.led.region_id, code=refusal.code)
            elif part.durable is not None:
                had_all = each.led.view.durable_at(each.copy) >= each.led.view.end
                has_moved = each.led.answered(each.copy, each.records, part.durable) or had_all
            self._settle(each.led, each.copy, has_moved=has_moved)

    def _failed(self, sent: Sequence[Sent], error: MetaError) -> None:
        if not self._peer_failures:
            log.warning("copies_unreachable", address=self._address, code=error.code)
        self._peer_failures += 1
        for each in sent:
            self._settle(each.led, each.copy, has_moved=False)

    def _settle(self, led: LedRegion, copy: CopyName, *, has_moved: bool) -> None:
        key = (led.region_id, copy)
        if has_moved:
            self._failures.pop(key, None)
            self._rests_ms.pop(key, None)
        else:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self._rests_ms[key] = self._clock.mono_ms() + LATER.delay_ms(failures, 0)
        if led.is_due(copy):
            self.mark(led, copy)


def encoded(batch: Sequence[tuple[LedRegion, CopyName]]) -> EncodedRequest:
    """The request for the first regions of the batch, as many as fit; one at least. Reads files.
    A region whose log cannot be read is passed over: the others have nothing to do with it."""
    sent, unread, size = list[Sent](), list[tuple[LedRegion, CopyName, MetaError]](), 0
    for led, copy in batch:
        try:
            records = led.stream.request(copy)
        except MetaError as error:
            unread.append((led, copy, error))
            continue
        sent.append(Sent(led, copy, records))
        size += sum(len(group.payload) for group in records.groups)
        if size >= REQUEST_BYTES:
            break
    parts = [AppendPart(each.led.region_id, each.copy.root, each.records) for each in sent]
    return EncodedRequest(sent, encode_append(parts), unread)
