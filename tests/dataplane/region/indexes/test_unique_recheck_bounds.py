"""A look at the entries of a unique index takes bounded memory, and reserves it before."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk
from dataplane.region.engine import file_ingest
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.indexes import unique_recheck
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.errors import Refused, Unavailable
from tests.dataplane.region.entries import INDEX, Place, Value, write_mixed
from tests.dataplane.region.entries import entries_of as index_of
from tests.dataplane.region.rig import order, place
from tests.dataplane.region.unique_entries import (
    FILLED,
    SOURCE,
    entry_key,
    made,
    marked,
    offenders_of,
    prepared_store,
)
from tests.dataplane.region.watched_budget import WatchedBudget


def behind(pairs: int) -> tuple[Region, Ingest, file_ingest.Prepared]:
    """Pairs of rows with one text each, of which one goes once the ingest is prepared, and the
    other's entry with it."""
    texts = [f"{at:03d}" for at in range(pairs)]
    rows = {b"%d-%s" % (which, text.encode()): (0, text) for text in texts for which in (1, 2)}
    region = marked(rows)
    source = made(region)
    ready = region.file_ingest.prepare(source)
    for text in texts:
        key = b"1-" + text.encode()
        gone: dict[Place, Value] = {(ROWS, key): None, (INDEX, entry_key(text, key)): None}
        write_mixed(region, f"gone-{text}", gone)
    return region, source, ready


PAIRS, AT_ONCE = 11, 3


@pytest.mark.parametrize("bound", ["keys", "their bytes"])
def test_given_many_entries_written_since_when_ingested_then_they_are_put_part_by_part(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    region, source, ready = behind(PAIRS)
    bytes_of_key = len(entry_key("000", b""))
    monkeypatch.setattr(unique_recheck, "SETTLED_BYTES_MAX", 1)
    if bound == "keys":
        monkeypatch.setattr(unique_recheck, "KEYS_AT_ONCE", AT_ONCE)
    else:
        monkeypatch.setattr(unique_recheck, "KEY_BYTES_AT_ONCE", AT_ONCE * bytes_of_key)
    put: list[int] = []
    batch_of = file_ingest.entry_batch

    def noted(index: int, entries: Sequence[tuple[bytes, bytes]]) -> pa.RecordBatch:
        put.append(len(entries))
        return batch_of(index, entries)

    monkeypatch.setattr(file_ingest, "entry_batch", noted)

    assert region.file_ingest.ingest(source, ready)

    assert put == [AT_ONCE] * (PAIRS // AT_ONCE) + [PAIRS % AT_ONCE]
    texts = [f"{at:03d}" for at in range(PAIRS)]
    assert index_of(region) == {entry_key(text, b""): b"2-" + text.encode() for text in texts}


def test_given_rivals_in_several_parts_when_ingested_then_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = marked({b"%04d" % number: (0, f"v{number % 100:02d}") for number in range(1_000)})
    source = made(region)
    monkeypatch.setattr(unique_recheck, "KEYS_AT_ONCE", 7)
    monkeypatch.setattr(unique_recheck, "SETTLED_BYTES_MAX", 1)

    with pytest.raises(Refused) as refused:
        region.file_ingest.ingest(source)

    assert offenders_of(refused.value).total == 100


def test_given_memory_that_is_taken_when_prepared_or_ingested_then_503_until_there_is_room() -> (
    None
):
    store, _ = prepared_store()
    budget = WatchedBudget()
    region = Region.open(replace(place(MemoryDisk(store)), budget=budget), order(1))
    ready = region.file_ingest.prepare(SOURCE)
    budget.bytes_max = 2 * budget.merged[-1]
    before = index_of(region)
    rows = budget.share()

    with budget.merging(budget.merged[-1] // 2):
        rows.set(budget.bytes_max * 3 // 4)
        for attempt in (region.file_ingest.prepare, region.file_ingest.ingest):
            with pytest.raises(Unavailable) as refused:
                attempt(SOURCE)
            assert refused.value.code == "not-ready"
        with pytest.raises(Unavailable):
            region.file_ingest.ingest(SOURCE, ready)
    assert index_of(region) == before
    rows.set(0)

    assert region.file_ingest.ingest(SOURCE, ready)
    assert index_of(region) == FILLED
    assert budget.work_bytes == 0
