"""Statements that read page after page: a transaction for as long as its scan is open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dataplane.frontend.catalog.catalog import Name
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.statements.query import EntryRange
from dataplane.frontend.statements.reads import PageOf
from dataplane.frontend.statements.regions import RegionClient
from dataplane.frontend.statements.scans import (
    Found,
    IndexScan,
    OpenScan,
    OpenScans,
    Place,
    RowScan,
    Scan,
    read_token,
    token_of,
)
from dataplane.frontend.statements.statements import Statements


@dataclass(frozen=True, slots=True)
class Scanning:
    statements: Statements
    regions: RegionClient
    opened: OpenScans = field(default_factory=OpenScans)

    async def begin_rows(self, name: Name, names: Sequence[str] | None) -> OpenScan:
        """Opens a scan of whole rows, or of some columns. It is open until `end`."""
        return await self.begin(name, lambda schema: RowScan(schema, schema.layout.chosen(names)))

    async def begin_index(
        self, name: Name, index: str, range_of: Callable[[Schema], EntryRange]
    ) -> tuple[OpenScan, Place]:
        def make(schema: Schema) -> Scan:
            entry_range = range_of(schema)
            return IndexScan(schema, schema.index(index), entry_range.end, entry_range.first)

        opened = await self.begin(name, make)
        return opened, opened.scan.start

    async def begin(
        self, name: Name, make: Callable[[Schema], Scan], max_lag_ms: int | None = None
    ) -> OpenScan:
        """Opens a scan. It is open until `end`. *max_lag_ms*: the age that rows of a page may have;
        None: leaders answer."""
        statements = self.statements
        statements.holder.check()
        transaction = statements.transactions.begin(statements.clock.mono_ms(), max_lag_ms)
        opened: OpenScan | None = None
        try:
            opened = OpenScan(make(await statements.bound(transaction, name)), transaction)
            self.opened.keep(opened)
        finally:
            if opened is None:
                statements.transactions.end(transaction)
        return opened

    def resume(self, token: str) -> tuple[OpenScan, Place]:
        """Raises Refused `bad-page-token`, `page-token-expired`."""
        self.statements.holder.check()
        id, cursor = read_token(token)
        return self.opened.find(id), cursor

    async def page(
        self, opened: OpenScan, cursor: Place, limit: int
    ) -> tuple[PageOf, Place | None]:
        """The scan stays open if there is more, and is over if this fails or was the last."""
        statements, transaction = self.statements, opened.transaction
        following: Place | None = None

        async def read(schema: Schema) -> tuple[Scan, Found]:
            scan = opened.scan.under(schema)
            return scan, await scan.page(self.regions, cursor, limit, statements.call(transaction))

        try:
            statements.check_age(transaction)
            old_schema = opened.scan.schema
            scan, page = await statements.finished(transaction, old_schema, read, opened.scan.under)
            following = page.following
        finally:
            if following is None:
                self.end(opened)
        token = None
        if following is not None:
            self.opened.keep(OpenScan(scan, transaction))
            token = token_of(transaction, following)
        return PageOf(scan.columns, page.rows, scan.schema.version, token), following

    def current(self, opened: OpenScan) -> OpenScan:
        """The same under the schema of its last page. Raises Refused if it is not open."""
        return self.opened.find(opened.transaction.id)

    def end(self, opened: OpenScan) -> None:
        self.opened.forget(opened.transaction)
        self.statements.transactions.end(opened.transaction)

    def end_old(self) -> None:
        """Ends the scans that nobody has read to their end in time."""
        for opened in self.opened:
            if not self.statements.left_s(opened.transaction):
                self.end(opened)
