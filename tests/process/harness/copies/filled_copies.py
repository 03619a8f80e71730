"""A table with two copies that takes the rows of files and gets an index, under writers, and loses
the disk of a leader."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.process.harness.copies.altered_copies import leader_lost
from tests.process.harness.node_outages import acknowledged_again, rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import running
from tests.process.harness.writer import word_of, wrong_rows

TABLE = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, word TEXT)"
    " PARTITION BY HASH (id) PARTITIONS 2 REPLICAS 2 MIN IN SYNC 1"
)
JOB_S = 240.0
"""The time for a job: Spark is started for the first."""
INDEX = {"name": "by_word", "columns": ["word"]}
FIRST, COUNT = 5_000_000, 2_000
"""Rows of the files: no writer has their ids."""


def files_in(folder: Path) -> Path:
    """A folder with a file of rows."""
    ids = range(FIRST, FIRST + COUNT)
    words = [word_of(id) for id in ids]
    folder.mkdir()
    table = pa.table({"id": pa.array(ids, pa.int64()), "word": pa.array(words, pa.string())})
    pq.write_table(table, folder / "rows.parquet")
    return folder


async def copies_filled(folder: Path) -> Seen:
    """Rows of files and the entries of an index reach every copy: they are there, and each has its
    row, when the disks of leaders are lost."""
    brought = files_in(folder / "in")
    flags = {"import-folders": str(brought)}
    async with running(folder, datanodes=3, flags=flags) as rig, rig.client() as db:
        await db.sql(TABLE)
        writers = await writers_of(db, "t")
        async with writing(writers):
            await acknowledged_again(rig, writers)
            taken = await db.tables.import_files("t", [str(brought)], wait_s=JOB_S)
            await db.indexes.create("t", INDEX, wait_s=JOB_S)
            await acknowledged_again(rig, writers)
            await leader_lost(rig, db)
            writable_ms = await acknowledged_again(rig, writers)
        rows = await rows_of(db, "t")
        checked = await db.tables.check("t", wait_s=JOB_S)
    shutil.rmtree(brought)
    own = [row for row in rows if row["id"] < FIRST]
    numbers = {"writable_ms": writable_ms, "rows": len(rows), "imported": taken.rows}
    kept = must(
        every_row_of_the_files_is_there=len(rows) - len(own) == COUNT,
        every_row_has_its_entry=checked.clean and checked.entries >= len(rows),
    )
    return Seen(numbers, (*kept, *wrong_rows(own, writers)))
