"""`client.table("main.public.flights")`: everything one can do with the rows of a table."""

from collections.abc import AsyncGenerator, Sequence

import pyarrow as pa

from metasrv.sdk.rows.binding import Binding
from metasrv.sdk.rows.frontends import Frontends
from metasrv.sdk.rows.loader import Load, LoadOp, LoadPlan, LoadResult, OnRows, Source
from metasrv.sdk.rows.region_scan import RegionScan
from metasrv.sdk.rows.rows import AsyncRows
from metasrv_base.clock import Clock
from metasrv_base.errors import Refused
from metasrv_base.rng import Rng
from metasrv_base.rows.nodes import NodePools
from metasrv_base.wire.limits import BATCH_ROWS_MAX

LOAD_OPS: Sequence[LoadOp] = ("insert", "upsert")


class AsyncTable(AsyncRows):
    """Statements (metasrv/sdk/rows/rows.py), the bulk load, and whole regions read at their
    nodes.
    """

    def __init__(
        self,
        binding: Binding,
        frontends: Frontends,
        nodes: NodePools,
        rng: Rng,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(binding, frontends, clock)
        self._region_scan = RegionScan(binding, nodes, rng)

    async def scan_regions(
        self,
        regions: Sequence[int],
        columns: Sequence[str] | None = None,
        max_lag: int | None = None,
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Live rows of those regions in key order, read from the nodes that lead them and through
        no frontend: for many readers side by side, each with regions of its own. *max_lag*: the age
        in ms that rows of a page may have, so that nodes with copies may answer it too."""
        bound = await self.binding.get()
        chosen = bound.layout.chosen(columns)
        for number in regions:
            async for page in self._region_scan.pages(bound, number, chosen, max_lag):
                yield page

    async def load(
        self,
        source: Source,
        batch_rows: int = 5000,
        on_progress: OnRows | None = None,
        op: LoadOp = "upsert",
    ) -> LoadResult:
        """Many rows, read as they are needed: a `pa.Table`, a `RecordBatchReader`, or batches.

        A batch of `batch_rows` goes to one region and is atomic there; the load as a whole is
        not. It ends at the first batch that cannot be applied, and the error has `rows`, the rows
        that were. `on_progress` is called with the rows applied so far. An upsert can be loaded
        again from the start; an insert cannot.
        """
        if op not in LOAD_OPS or not 1 <= batch_rows <= BATCH_ROWS_MAX:
            raise Refused(
                "invalid-request", expected=f"1 to {BATCH_ROWS_MAX} rows, and insert or upsert"
            )
        through = self._through
        plan = LoadPlan(op, batch_rows, through, lambda: self._key({}), on_progress)
        return await Load(await self.binding.get(), plan).run(source)
