"""Rows in the order of the primary key, from regions that each have a part of every key range."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.statements.entry_merge import EntryMerge, PageShare
from dataplane.frontend.statements.regions import CallBudget, RegionClient, RegionPage
from dataplane.frontend.statements.scans import REGIONS_AT_ONCE, Found, Place, shown
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.rows.layout import LayoutColumn
from metasrv_base.rows.nodes import has_more


@dataclass(frozen=True, slots=True)
class KeyMerge:
    schema: Schema
    columns: tuple[LayoutColumn, ...]
    first: bytes
    end: bytes | None
    """Exclusive; None: to the last."""
    numbers: Sequence[int]
    """The regions that may have such rows."""

    @property
    def start(self) -> Place:
        return Place(0, self.first)

    def under(self, schema: Schema) -> "KeyMerge":
        return replace(self, schema=schema)

    async def page(
        self, regions: RegionClient, cursor: Place, limit: int, call: CallBudget
    ) -> Found:
        """The next rows of all regions, by their keys."""
        merge = EntryMerge(self.numbers, cursor.key, limit, by="_key")
        ids = tuple(column.id for column in self.columns)

        async def refill(share: PageShare) -> None:
            page = RegionPage(share.key, self.end, ids, share.rows, bytes_max=share.bytes_max)
            part = await regions.scan(self.schema, share.number, page, call)
            merge.filled(share, part, is_last=part.num_rows < share.rows and not has_more(part))

        while shares := merge.wanted():
            await fan_out([partial(refill, share) for share in shares], at_once=REGIONS_AT_ONCE)
            merge.take()
        key = merge.following
        return Found(shown(self.columns, merge.taken), None if key is None else Place(0, key))
