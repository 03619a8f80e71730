"""Copies of this node fetch the files of leaders whose logs do not reach back to them, and those
that a record of the log names.

A fetch is a session at the leader, the manifest, and then each file that is not here, in pieces. It
ends with an install, after which the leader's log goes on from the files; where the leader has
flushed meanwhile, another fetch brings what is new. A fetch of named files has no manifest and no
install: the leader sends the record again. Whatever fails is tried again later, and lacks what has
not arrived by then.
"""

import asyncio
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog

from dataplane.datanode.copies.followed import FetchNeed, FetchProgress, FollowedRegion
from dataplane.datanode.copies.transfer_rate import TransferRate
from dataplane.datanode.ports import OwnNode
from dataplane.region.engine.region import REGION_FILE
from dataplane.region.fetching.file_fetch import FileFetch
from dataplane.region.fetching.logged_fetch import LoggedFetch
from dataplane.region.fetching.session_files import MANIFEST_FILE
from dataplane.region.manifests.manifest import MANIFEST_BYTES_MAX, decode_manifest
from metasrv_base.clock import Clock
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import Corrupt, MetaError, NotFound
from metasrv_base.wire.node.copies import OrderedCopy
from metasrv_base.wire.node.copy_sessions import CopySession, CopySessionRequest

FETCHES_MAX = 2
"""Copies of a node that fetch at a time; each has one piece in memory. One more fetches files that
a record names: others wait for it."""
PACE_MS = 500
LATER = Backoff(first_ms=1_000, max_ms=30_000)
"""The pause before a fetch that has failed is begun again."""

log = structlog.get_logger()


class FilePort(Protocol):
    """The node of a leader. Raises the five errors."""

    async def begin_session(self, address: str, request: CopySessionRequest) -> CopySession: ...

    async def read_piece(self, address: str, session: str, file: int, offset: int) -> bytes:
        """Returns at least one byte, or none at the end of the file."""
        ...

    async def end_session(self, address: str, session: str) -> None: ...


@dataclass(slots=True)
class _Failures:
    """Fetches of a copy in a row that failed, and the time before which it rests."""

    count: int = 0
    until_ms: int = 0


class FileFetches:
    """Fetches of the copies of this node. `run` is called once for each fetch that may be under way
    at a time. *copies*: those that there are now."""

    def __init__(
        self,
        copies: Callable[[], Iterable[FollowedRegion]],
        port: FilePort,
        node: OwnNode,
        clock: Clock,
        rate: TransferRate,
    ) -> None:
        self._copies, self._port, self._node = copies, port, node
        self._clock, self._rate = clock, rate
        self._under_way: set[int] = set()
        self._failures: dict[int, _Failures] = {}
        """Failures of the last fetches, by region."""
        self._wake = asyncio.Event()
        """Set, and replaced, when a copy waits for files that a record names."""

    async def run(self, *, named_only: bool = False) -> None:
        """Fetches for ever, one copy at a time. *named_only*: files that a record names."""
        while True:
            if not await self.fetch_one(named_only=named_only):
                with suppress(TimeoutError):
                    async with asyncio.timeout(PACE_MS / 1000):
                        await self._wake.wait()

    def wake(self) -> None:
        """A copy waits for files: they are fetched now."""
        self._wake.set()
        self._wake = asyncio.Event()

    async def fetch_one(self, *, named_only: bool = False) -> bool:
        """Fetches the files of a copy that needs some, first of one whose next record names them.
        False: there is none, or it failed."""
        due = [each for each in self._copies() if self._is_due(each)]
        followed = next((each for each in due if each.copy.lacks is not None), None)
        if followed is None and not named_only:
            followed = next(iter(due), None)
        if followed is None:
            return False
        region_id = followed.copy.region_id
        self._under_way.add(region_id)
        try:
            return await self._try(followed)
        finally:
            self._under_way.discard(region_id)
            followed.progress = None

    def _is_due(self, followed: FollowedRegion) -> bool:
        region_id = followed.copy.region_id
        rests = self._failures.get(region_id, _Failures()).until_ms > self._clock.mono_ms()
        return (
            followed.leader_with_files is not None
            and not rests
            and region_id not in self._under_way
        )

    async def _try(self, followed: FollowedRegion) -> bool:
        leader, need = followed.leader_with_files, followed.need
        assert leader is not None
        assert need is not None
        region_id, began_ms = followed.copy.region_id, self._clock.mono_ms()
        facts = {"region_id": region_id, "leader": leader.node, "epoch": need.epoch}
        try:
            fetched = await self._fetched(followed, leader, need)
        except MetaError as error:
            self._note_failure(region_id)
            if isinstance(error, Corrupt):
                log.warning("fetched_file_was_damaged", facts=error.facts, **facts)
            else:
                log.warning("file_fetch_failed", code=error.code, facts=error.facts, **facts)
            return False
        except Exception:  # of one copy: the node, and the others, go on
            self._note_failure(region_id)
            log.exception("copy_failed", **facts)
            return False
        self._failures.pop(region_id, None)
        took_ms = self._clock.mono_ms() - began_ms
        log.info("files_fetched", bytes=fetched, duration_ms=took_ms, **facts)
        return True

    def _note_failure(self, region_id: int) -> None:
        failures = self._failures.setdefault(region_id, _Failures())
        failures.count += 1
        failures.until_ms = self._clock.mono_ms() + LATER.delay_ms(failures.count, 0)

    async def _fetched_named(
        self, followed: FollowedRegion, leader: OrderedCopy, need: FetchNeed
    ) -> int:
        """Fetches the files that the next record names. Returns the bytes that were fetched."""
        assert leader.address is not None
        fetch = await followed.fetching(need, followed.copy.fetch_lacked)
        request = self._request(followed, leader, need.epoch)
        files = {"files": fetch.names_in(leader.root)}
        try:
            session = await self._port.begin_session(
                leader.address, request.model_copy(update=files)
            )
        except NotFound as error:
            if error.facts.get("what") == REGION_FILE:
                await followed.fetching(need, followed.copy.needs_all)
            raise
        try:
            source = _Source(self._port, leader.address, session, self._rate)
            for number in fetch.missing:
                await _receive(followed, fetch, number, source, need)
            await followed.fetching(need, followed.copy.try_again)
            return fetch.bytes_total
        finally:
            await self._end(leader.address, session.session)

    async def _fetched(self, followed: FollowedRegion, leader: OrderedCopy, need: FetchNeed) -> int:
        """Fetches and installs. Returns the bytes that were fetched."""
        assert leader.address is not None
        if need.lacked is not None:
            return await self._fetched_named(followed, leader, need)
        request = self._request(followed, leader, need.epoch)
        common = {"sequence": followed.copy.common}
        session = await self._port.begin_session(leader.address, request.model_copy(update=common))
        fetch: FileFetch | None = None
        try:
            source = _Source(self._port, leader.address, session, self._rate)
            manifest = decode_manifest(await source.manifest(), leader.root)
            fetch = await followed.fetching(
                need, lambda: followed.copy.fetch(leader.root, manifest)
            )
            before = fetch.bytes_here
            for number in fetch.missing:
                await _receive(followed, fetch, number, source, need)
            total, install = fetch.bytes_total, fetch
            await followed.fetching(need, lambda: followed.copy.install(install))
            return total - before
        finally:
            if fetch is not None:
                fetch.close()
            await self._end(leader.address, session.session)

    def _request(
        self, followed: FollowedRegion, leader: OrderedCopy, epoch: int
    ) -> CopySessionRequest:
        me = self._node
        return CopySessionRequest(
            cluster_id=me.cluster_id or "",
            node_id=leader.node,
            region_id=str(followed.copy.region_id),
            epoch=epoch,
            root=leader.root,
            copy_node=me.node_id,
        )

    async def _end(self, address: str, session: str) -> None:
        try:
            await self._port.end_session(address, session)
        except MetaError as error:
            log.info("copy_session_left", address=address, code=error.code)


@dataclass(frozen=True, slots=True)
class _Source:
    """A session at a leader."""

    port: FilePort
    address: str
    session: CopySession
    rate: TransferRate

    async def piece(self, file: int, offset: int) -> bytes:
        data = await self.port.read_piece(self.address, self.session.session, file, offset)
        await self.rate.spend(len(data))
        return data

    async def manifest(self) -> bytes:
        """Raises Corrupt for bytes that are not what the session has."""
        size, data = self.session.manifest_bytes, b""
        while len(data) < min(size, MANIFEST_BYTES_MAX):
            piece = await self.piece(MANIFEST_FILE, len(data))
            if not piece:
                break
            data += piece
        if len(data) != size or f"{zlib.crc32(data):08x}" != self.session.manifest_checksum:
            raise Corrupt(address=self.address, bytes=len(data), expected=size)
        return data


async def _receive(
    followed: FollowedRegion,
    fetch: FileFetch | LoggedFetch,
    number: int,
    source: _Source,
    need: FetchNeed,
) -> None:
    size = fetch.file(number).bytes
    arrival = await followed.fetching(need, lambda: fetch.receive(number))
    try:
        while arrival.size < size:
            data = await source.piece(number, arrival.size)
            if not data:
                break
            rest = data[: size - arrival.size]  # files of statements grow
            await followed.fetching(need, partial(arrival.append, rest))
            followed.progress = FetchProgress(fetch.bytes_here + arrival.size, fetch.bytes_total)
        await followed.fetching(need, arrival.finish)
    finally:
        arrival.close()
