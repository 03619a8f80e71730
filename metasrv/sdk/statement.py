"""One statement against the regions of a table: the newest route, the same id, until a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown
from base.ids import TableId
from base.ids import region_id as numbered
from base.rng import Rng
from base.rows.layout import Column
from base.rows.nodes import Nodes
from base.rows.outcome import RegionOutcome, outcome_of
from base.rows.retry import JUDGED, REGION_BACKOFF, at_the_end, attempts, may_send_again
from base.rows.split import Part, body_of
from base.wire.batches import BatchHeader, BatchResult, ReadHeader
from base.wire.tables import RegionRouteBody
from metasrv.sdk.binding import Binding, Bound

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement:
    """What all parts of one statement share."""

    binding: Binding
    nodes: Nodes
    rng: Rng
    until: float
    """Seconds of the loop's clock."""

    async def write(self, bound: Bound, part: Part, statement_id: str) -> RegionOutcome:
        """Never raises one of our errors: each part says for itself what became of it."""
        region_id = str(numbered(TableId(bound.layout.table_id), part.number))
        epoch, unknown_epoch = 0, -1

        async def send(now: Bound) -> BatchResult | MetaError:
            nonlocal epoch, unknown_epoch
            if not now.layout.holds_the_same(bound.layout):
                return Conflict("schema-version-stale", found=bound.layout.schema_version)
            region = _region(now, part.number)
            epoch = region.epoch
            body = await asyncio.to_thread(body_of, part.rows, _header(now, region, statement_id))
            try:
                return await self.nodes.write(region, body, self.left_ms)
            except Unknown:
                unknown_epoch = max(unknown_epoch, epoch)
                raise

        try:
            done = await self.until_final(bound, send)
        except MetaError as error:
            done = error
        if isinstance(done, BatchResult):
            return RegionOutcome(region_id, "applied", done.rows, done.version, done.repeated)
        # A leader of a higher epoch has read all that an older one can ever have applied (P5), so
        # its refusal is the truth; at the same epoch a copy may still be on its way.
        judged = isinstance(done, Conflict) and done.code in JUDGED and epoch > unknown_epoch
        perhaps = unknown_epoch >= 0 and not judged
        return outcome_of(region_id, part.rows.num_rows, done, perhaps)

    async def until_final(self, bound: Bound, send: Callable[[Bound], Awaitable[T]]) -> T:
        """*send* with the newest binding until it succeeds or its error is final."""
        now = bound
        failed = False
        found: list[T] = []
        try:
            async for attempt in attempts(self.until, self.rng, REGION_BACKOFF, may_send_again):
                with attempt:
                    if failed:
                        now = await self.binding.read_again(now)
                    failed = True
                    found = [await self._sent(now, send)]
        except NotFound as error:
            raise at_the_end(error) from error
        return found[0]

    async def _sent(self, now: Bound, send: Callable[[Bound], Awaitable[T]]) -> T:
        try:
            return await send(now)
        except MetaError as error:
            if may_send_again(error) or error.code == "region-lost":
                self.binding.doubt(now)
            raise

    async def read(
        self,
        bound: Bound,
        number: int,
        send: Callable[[RegionRouteBody, ReadHeader], Awaitable[T]],
        columns: Sequence[Column] = (),
    ) -> T:
        """A read changes nothing, so a lost answer is only a late one.

        *columns*: what is asked for. Raises Conflict `schema-version-stale` once the table has
        them no more.
        """

        async def ask(now: Bound) -> T | Conflict:
            if not now.layout.has(columns):
                return Conflict("schema-version-stale", found=bound.layout.schema_version)
            region = _region(now, number)
            header = ReadHeader(
                table_id=now.layout.table_id,
                schema_version=now.layout.schema_version,
                epoch=region.epoch,
            )
            return await send(region, header)

        try:
            found = await self.until_final(bound, ask)
        except Unknown as error:
            raise Unavailable("not-ready", **error.facts) from error
        if isinstance(found, Conflict):
            raise found
        return found

    @property
    def has_time(self) -> bool:
        return asyncio.get_running_loop().time() < self.until

    @property
    def left_ms(self) -> int:
        return max(1, int((self.until - asyncio.get_running_loop().time()) * 1000))


def _region(bound: Bound, number: int) -> RegionRouteBody:
    if number not in bound.regions:
        raise NotFound("not-found", what="region", name=f"{bound.layout.name} {number}")
    return bound.regions[number]


def _header(bound: Bound, region: RegionRouteBody, statement_id: str) -> BatchHeader:
    return BatchHeader(
        table_id=bound.layout.table_id,
        schema_version=bound.layout.schema_version,
        epoch=region.epoch,
        statement_id=statement_id,
    )
