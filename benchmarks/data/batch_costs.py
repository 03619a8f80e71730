"""`benchmarks.data.batch_costs`: processor time of each step of a batch of 1,000 rows.

One thread does what a frontend and a region do with the rows of one insert, step by step, from the
bytes that a client sends to the log's fsync and the memtable. HTTP is not in it:
`benchmarks.data.rows` has the whole way. Each batch goes through all steps once; a figure is the
median of the batches.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from benchmarks.data.region_costs import Bench, spent_us
from benchmarks.data.rows import BATCH_ROWS, COLUMNS, rows_between, stream_of
from benchmarks.report import head, line
from dataplane.datanode.regions.batch_body import read_batch
from dataplane.frontend.catalog.schema import Schema
from dataplane.frontend.http.arrow_in import decoded
from dataplane.frontend.planning.planning import Known, RegionStatement
from dataplane.frontend.planning.row_input import Op, RowInput, by_region, from_arrow
from dataplane.region.format.columns import ColumnDef
from metasrv_base.elements.states import ElementState
from metasrv_base.rows.split import body_of
from metasrv_base.schema.partition import HashRule
from metasrv_base.wire.frontend.feed import FeedColumn, FeedTable
from metasrv_base.wire.node.batches import BatchHeader

BATCHES = 200
TABLE_ID = 1024
T = TypeVar("T")


class Steps:
    """Processor time in microseconds, by step."""

    def __init__(self) -> None:
        self.us: dict[str, list[float]] = {}

    def take(self, name: str, work: Callable[[], T]) -> T:
        found: list[T] = []
        self.us.setdefault(name, []).append(spent_us(lambda: found.append(work())))
        return found[0]


def schema() -> Schema:
    columns = [
        FeedColumn.model_validate({"id": id, "state": ElementState.PUBLIC, **column})
        for id, column in enumerate(COLUMNS, start=1)
    ]
    return Schema.of(
        FeedTable(
            id=TABLE_ID,
            catalog="main",
            schema_name="public",
            name="t",
            version=1,
            schema_version=1,
            schema_floor=1,
            columns=tuple(columns),
            primary_key=(1,),
            partition=HashRule(columns=(1,), count=1),
            regions=(),
        )
    )


def columns() -> tuple[ColumnDef, ...]:
    return tuple(
        ColumnDef(id=id, type=str(column["type"]), nullable=False)
        for id, column in enumerate(COLUMNS, start=1)
    )


def follow(steps: Steps, known: Schema, region: Bench, number: int) -> None:
    """One batch, from its client's bytes to the region's answer."""
    sent = stream_of(rows_between(number * BATCH_ROWS, (number + 1) * BATCH_ROWS))
    (rows,) = steps.take("frontend: judge, decode, validate", lambda: decoded(sent))
    given = steps.take(
        "frontend: types, keys, none twice", lambda: from_arrow(known.layout, rows, Op.INSERT)
    )
    parts = steps.take("frontend: choose regions", lambda: by_region(known.layout, given))
    (part,) = parts.values()
    batch = steps.take("frontend: plan", lambda: planned(known, part))
    header = BatchHeader(
        table_id=TABLE_ID,
        schema_version=1,
        epoch=1,
        statement_id=f"statement-{number:022d}",
        maintains_indexes=True,
    )
    body = steps.take("frontend: encode for the region", lambda: body_of(batch, header))
    header, batch = steps.take("node: judge, decode, validate", lambda: read_batch(body))
    (answer,) = steps.take(
        "region: check, log, fsync, look, memtable",
        lambda: region.region.writer.apply([(header, batch)]),
    )
    if isinstance(answer, Exception):
        raise answer


def planned(known: Schema, part: RowInput) -> pa.RecordBatch:
    return RegionStatement(known, Op.INSERT, part).plan(Known())


def main(batches: int) -> int:
    steps, known = Steps(), schema()
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as name:
        region = Bench(Path(name), columns())
        for number in range(batches):
            follow(steps, known, region, number)
    head(f"python -m benchmarks.data.batch_costs --batches {batches}", batches)
    for name, values in steps.us.items():
        line(f"{name}, us", values, "", 0)
    line("all of it, us", map(sum, zip(*steps.us.values(), strict=True)), "", 0)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.data.batch_costs", description=__doc__)
    parser.add_argument("--batches", type=int, default=BATCHES)
    raise SystemExit(main(parser.parse_args().batches))
