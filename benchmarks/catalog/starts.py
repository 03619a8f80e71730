"""`benchmarks.catalog.starts`: the catalog of a server that starts, by a snapshot and by the log.

Processor time and memory for a table, without a store: what a start costs beside its reads. The
peers, in the same run: applying the log, and decoding every table of the snapshot as well. Then
the same where every table has changed since the snapshot: held decoded, and packed again.
"""

import argparse
import gc
import resource
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from benchmarks.service.filled import Filling, stamped_tables
from keys.catalog.catalog import Catalog
from keys.catalog.follower import UNPACKED_MAX
from keys.catalog.snapshot_codec import catalog_of, parts_of
from keys.catalog.tables.repacking import depth_of, repacked
from keys.commit.batch import LogHead
from keys.commit.bootstrap import bootstrap_request
from keys.model.log import CatalogUpdate, CatalogUpdateKey, TableAltered
from keys.model.snapshot.snapshots import PartsDigest, SnapshotRef
from keys.store.kv import Compare, Put
from keys.value import decode
from metasrv_base.concurrency.turns import at_once

NOW_MS = 1_000
PACKED = UNPACKED_MAX // 10  # tables of eight columns and a region between two packings
T = TypeVar("T")
LOG = CatalogUpdateKey.under().start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20_000)
    parser.add_argument("--regions", type=int, default=1)
    asked = parser.parse_args()
    updates = list(stored_updates(asked.tables, asked.regions))
    print(f"{asked.tables} tables of {asked.regions} regions; for a table:")
    live = measured("the log applied", asked.tables, lambda: from_log(updates))
    parts = list(parts_of(live))
    ref = ref_of(live, parts)
    measured("a snapshot loaded", asked.tables, lambda: catalog_of(ref, parts))
    measured("the same, and all tables decoded", asked.tables, lambda: decoded(ref, parts))
    measured("a snapshot, and all tables changed", asked.tables, lambda: changed(ref, parts, None))
    measured("the same, packed as they change", asked.tables, lambda: changed(ref, parts, PACKED))
    print(f"stored: {sum(map(len, parts)) / asked.tables:.0f} bytes of parts")


def stored_updates(tables: int, regions: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields the key and value of each update of the log."""
    fence = Compare(b"fence", 1)
    first = [put for put in bootstrap_request(fence, "p", NOW_MS).writes if isinstance(put, Put)]
    head = LogHead(fence, 1, 1, NOW_MS, 1)
    for puts in (first, *stamped_tables(Filling(tables, regions), head, NOW_MS)):
        yield from ((put.key, put.value) for put in puts if put.key.startswith(LOG))


def from_log(updates: list[tuple[bytes, bytes]]) -> Catalog:
    catalog = Catalog()
    for key, value in updates:
        update = decode(CatalogUpdate, value, key=key.decode())
        catalog = catalog.apply(update, update.version)
    return catalog


def decoded(ref: SnapshotRef, parts: list[bytes]) -> tuple[Catalog, list[object]]:
    catalog = catalog_of(ref, parts)
    return catalog, list(catalog.tables.values())


def changed(ref: SnapshotRef, parts: list[bytes], packed: int | None) -> Catalog:
    """Alters each table once. *packed*: after so many tables they are packed; None: never."""
    catalog = catalog_of(ref, parts)
    for number, table_id in enumerate(list(catalog.tables), start=1):
        old = catalog.tables[table_id].info
        options = {**old.options, "comment": f"altered {table_id}"}
        info = old.model_copy(update={"options": options, "version": old.version + 1})
        text = TableAltered(info=info).model_dump_json()
        entry = TableAltered.model_validate_json(text, strict=True)
        new = CatalogUpdate(
            version=catalog.version + 1, at_ms=NOW_MS, procedure=None, entries=(entry,)
        )
        catalog = catalog.apply(new, catalog.revision + 1)
        if packed is not None and number % packed == 0:
            catalog = packed_again(catalog)
    return catalog


def packed_again(catalog: Catalog) -> Catalog:
    before = catalog.tables
    packed = at_once(repacked(before, catalog.version, depth_of(before)))
    return replace(catalog, tables=before.rebased(before, packed.layers, packed.packs))


def ref_of(catalog: Catalog, parts: list[bytes]) -> SnapshotRef:
    digest = PartsDigest()
    for raw in parts:
        digest.add(raw)
    return SnapshotRef(
        version=catalog.version,
        revision=catalog.revision,
        at_ms=catalog.at_ms,
        parts=len(parts),
        size_bytes=sum(map(len, parts)),
        log_bytes=0,
        digest=str(digest),
        made_at_ms=NOW_MS,
    )


def measured(name: str, tables: int, work: Callable[[], T]) -> T:
    """Prints the processor time of *work*, then the memory of its result in a second run."""
    gc.disable()
    before_s = processor_s()
    result = work()
    spent_s = processor_s() - before_s
    tracemalloc.start()
    kept = work()
    size_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gc.enable()
    del kept
    print(f"{name}: {spent_s / tables * 1e6:.1f} us, {size_bytes / tables:.0f} bytes")
    return result


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
