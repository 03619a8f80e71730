"""`client.table("main.public.flights")`: everything one can do with the rows of a table."""

from collections.abc import Sequence

from base.errors import Refused
from base.wire.limits import BATCH_ROWS_MAX
from metasrv.sdk.loader import Load, LoadOp, LoadPlan, LoadResult, OnRows, Source
from metasrv.sdk.rows import AsyncRows

LOAD_OPS: Sequence[LoadOp] = ("insert", "upsert")


class AsyncTable(AsyncRows):
    """Statements (metasrv/sdk/rows.py) and the bulk load."""

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
        plan = LoadPlan(op, batch_rows, await self._way(), on_progress)
        return await Load(await self.binding.get(), plan).run(source)
