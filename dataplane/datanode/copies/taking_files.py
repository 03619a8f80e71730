"""Snapshots that jobs read of a region, and orders by which it takes the files that they have made:
entries of an index, or rows.

Writers wait for the end of it alone. In a region with copies what is written travels in the log:
the entries of a second look as groups, the files as a record that a copy has once it has them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.region.engine.file_ingest import Batch, Prepared
from dataplane.region.engines.engine import ServedRegion
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.orders import AdoptFiles, IngestFiles


class ChangesInTurn(Protocol):
    """The owner of an open region: nobody writes beside what it runs."""

    @property
    def region(self) -> ServedRegion: ...

    async def change_on_loop(self, act: Callable[[], Awaitable[None]]) -> None: ...


def adopt(region: ServedRegion, order: AdoptFiles) -> None:
    """Exchanges borrowed files for own ones. The rows are the same: copies need not know."""
    region.file_ingest.adopt(order.procedure, order.attempt, order.files)
    if not region.borrowed_roots:
        region.maintenance.collect()


def ingest_of(order: IngestFiles) -> Ingest:
    return Ingest(
        order.procedure,
        order.attempt,
        order.index,
        order.mark,
        order.files,
        tuple(order.unique_columns),
    )


async def ingest(owner: ChangesInTurn, led: LedRegion | None, order: IngestFiles) -> None:
    """Takes the files. *led*: the copies of the region; None: it has none."""
    source, part = ingest_of(order), owner.region.file_ingest
    prepared = None
    if order.prepares or source.unique_columns:
        prepared = await asyncio.to_thread(part.prepare, source)
    while not order.prepares and prepared is not None and not prepared.is_whole:
        await owner.change_on_loop(partial(_settle, owner.region, led, source, prepared))
        prepared = await asyncio.to_thread(part.prepare, source)
    if not order.prepares:
        await owner.change_on_loop(partial(_take, owner.region, led, source, prepared))


async def snapshot_of(
    owner: ChangesInTurn, led: LedRegion | None, mark: str, indexes: Sequence[int] | None
) -> Snapshot:
    """The files as of a mark, as `Region.snapshot`. Raises Unavailable before a promoted leader has
    in memory what its epoch was opened with: rows of the mark may be among that."""
    region = owner.region
    if led is None:
        return await asyncio.to_thread(region.snapshot, mark, indexes)
    led.must_be_readable()
    try:
        return await asyncio.to_thread(region.snapshot, mark, indexes)
    except Unavailable:  # while a group waits for copies, its log cannot be cut behind it
        await owner.change_on_loop(partial(asyncio.to_thread, region.maintenance.freeze))
    return await asyncio.to_thread(region.snapshot, mark, indexes)


async def _settle(
    region: ServedRegion, led: LedRegion | None, source: Ingest, prepared: Prepared
) -> None:
    """Puts the entries that are known by now: others are looked for beside writers."""
    if led is None:
        await asyncio.to_thread(region.file_ingest.settle, source, prepared)
    else:
        await _put(led, region.file_ingest.entries_first(source, prepared, whole=False))


async def _take(
    region: ServedRegion, led: LedRegion | None, source: Ingest, prepared: Prepared | None
) -> None:
    if led is None:
        await asyncio.to_thread(region.file_ingest.ingest, source, prepared)
        return
    await _put(led, region.file_ingest.entries_first(source, prepared))
    await led.change(source)


async def _put(led: LedRegion, batches: Iterator[Batch]) -> None:
    """Each is counted by all copies before the next is looked for."""
    led.must_order()
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        (answer,) = await led.apply([batch])
        if isinstance(answer, MetaError):
            raise answer
