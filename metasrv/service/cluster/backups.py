"""A backup: every key of the cluster at one revision, as a file that is made while it is sent.

Any server makes one, leader or not: what it reads is the store's, at one revision. Writers are not
kept from anything, and a page of keys is all that is held here.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from dataclasses import dataclass

import structlog

from keys.catalog.log.revision_pins import HeldPin, is_compacted
from keys.commit.copying import uncopied_of
from keys.key import Range
from keys.model.cluster import ClusterKey, ClusterRecord
from keys.model.staging.parts import LargeUpdate, LargeUpdateKey
from keys.store.kv import Get, KeyValue, Request
from keys.store.scan import pages
from keys.value import decode
from metasrv.service.state.state import ServerState
from metasrv_base.backup.backup_file import BackupFailure, BackupHeader, BackupKey
from metasrv_base.backup.backup_writer import BackupWriter
from metasrv_base.errors import MetaError, Unavailable

EVERYTHING = Range(b"", b"\0")
PAGE = Get(b"", limit=128)
"""Keys that are held at once: mostly 100 KiB, and 192 MiB if each has a value of etcd's largest."""
LOOK_MS = 250
"""Pause between two looks whether the keys of a batch are written."""
STALLED_MS = 2_000
"""Time without another key written after which nobody waits for them: a leader writes some hundred
in each of its transactions, and the next leader may come in 10 s, or never."""
WAIT_MS = 10_000
"""Time after which nobody waits for keys that are being written: they take 2 s at 3,000 tables."""
BACKUPS_MAX = 2
"""Backups that one server makes at once: each takes half of a processor."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that has begun: it takes one of BACKUPS_MAX places until it has ended."""

    state: ServerState
    header: BackupHeader
    pin: HeldPin | None
    """Keeps the revision from being compacted; None: etcd took none."""

    def ended(self) -> None:
        """Call it once, when its last part was sent, or its reader has gone."""
        _give_place_back(self.state)

    async def parts(self) -> AsyncGenerator[bytes]:
        """Yields the file, part by part. One that cannot be finished ends with the reason."""
        writer = BackupWriter()
        yield writer.begin(self.header)
        pins = self.state.pins
        try:
            async for part in self._keys(writer):
                yield part
                await pins.renew(self.pin)
        except MetaError as error:
            if is_compacted(error):
                pins.restarts["backup"] += 1  # the client begins again
            log.warning("backup_failed", revision=self.header.revision, reason=str(error))
            yield writer.fail(BackupFailure(failed=error.code, reason=str(error)))
        else:
            yield writer.end()
        finally:
            await pins.release(self.pin)

    async def _keys(self, writer: BackupWriter) -> AsyncGenerator[bytes]:
        deadline_ms, revision = self.state.facts.store_deadline_ms, self.header.revision
        reader = pages(
            self.state.kv, EVERYTHING, deadline_ms=deadline_ms, revision=revision, like=PAGE
        )
        async for page in reader:
            if self.state.is_stopping:
                raise Unavailable("not-ready", what="a server that ends")
            keys = [BackupKey.of(*item) for item in page.items]
            yield await asyncio.to_thread(writer.keys, keys)


async def begun(state: ServerState) -> Backup:
    """A backup of the newest revision. Raises Unavailable while too many are being made, before
    there is a cluster, and if the store does not answer."""
    if state.backups >= BACKUPS_MAX:
        raise Unavailable("not-ready", what=f"a backup ({BACKUPS_MAX} are being made)")
    state.backups += 1
    with ExitStack() as undo:
        undo.callback(_give_place_back, state)
        backup = await _begun(state)
        undo.pop_all()
    return backup


def _give_place_back(state: ServerState) -> None:
    state.backups -= 1


@dataclass(slots=True)
class _KeysAwaited:
    """The wait until the keys of a large version are written."""

    state: ServerState
    began_ms: int
    progressed_ms: int
    last: LargeUpdate | None = None

    def look(self, large: LargeUpdate) -> None:
        """Notes how many are written. Raises Unavailable once nobody is to wait longer.

        *large*: the version, as it is stored now.
        """
        now = self.state.clock.mono_ms()
        if large != self.last:
            self.last, self.progressed_ms = large, now
        if now - self.progressed_ms < STALLED_MS and now - self.began_ms < WAIT_MS:
            return
        is_led = self.state.leader is not None
        who = "the leader is writing them" if is_led else "no server leads, which would write them"
        left = f"{large.keys - large.copied} of {large.keys} keys of version {large.version}"
        raise Unavailable("not-ready", what="A backup", reason=f"{left} are not written; {who}")


async def _begun(state: ServerState) -> Backup:
    """Waits for a revision at which no version is being written to its keys: STALLED_MS while none
    of them comes, and WAIT_MS in all. Raises Unavailable, which says for what it has waited."""
    now = state.clock.mono_ms()
    awaited = _KeysAwaited(state, began_ms=now, progressed_ms=now)
    reads = (Get(bytes(ClusterKey())), Get(*LargeUpdateKey.under()))
    pins, deadline_ms = state.pins, state.facts.store_deadline_ms
    while True:
        answer = await state.kv.txn(Request(reads=reads), deadline_ms=deadline_ms)
        revision, ranges = answer.revision, answer.ranges
        if not ranges[0]:
            raise Unavailable("not-ready", what="the cluster")
        uncopied = uncopied_of(ranges[1])
        if uncopied is None:
            pinned = await pins.take("a backup", reads)
            if pinned.held is not None:
                revision, ranges = pinned.revision, pinned.ranges
            uncopied = uncopied_of(ranges[1])
            if uncopied is None:
                try:
                    return Backup(state, await _header(state, revision, ranges[0]), pinned.held)
                except MetaError:
                    await pins.release(pinned.held)
                    raise
            await pins.release(pinned.held)
        awaited.look(uncopied.value)
        await state.clock.sleep_ms(LOOK_MS)


async def _header(state: ServerState, revision: int, record: tuple[KeyValue, ...]) -> BackupHeader:
    deadline_ms, key = state.facts.store_deadline_ms, str(ClusterKey())
    cluster = decode(ClusterRecord, record[0].value, key=key)
    count = Get(EVERYTHING.start, EVERYTHING.end, count_only=True)
    counted = await state.kv.range(count, deadline_ms=deadline_ms, revision=revision)
    return BackupHeader(
        cluster_id=cluster.cluster_id,
        revision=revision,
        keys=counted.count,
        made_at_ms=state.clock.wall_ms(),
        made_by=state.facts.version,
    )
