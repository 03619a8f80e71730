"""`benchmarks.catalog.kept`: the memory of the versions that a server keeps, without a store.

A catalog is loaded from its snapshot, as a server loads it. Then tables are altered, one a version,
with every version kept or none but the newest.
"""

import argparse
import gc
import tracemalloc
from collections import deque

from benchmarks.catalog.starts import from_log, ref_of, stored_updates
from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import catalog_of, parts_of
from keys.model.log import CatalogUpdate, TableAltered

STEP = 97  # between the places of two tables that are altered one after the other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=1_000)
    asked = parser.parse_args()
    live = from_log(list(stored_updates(asked.tables, 1)))
    parts = list(parts_of(live))
    ref = ref_of(live, parts)
    del live
    print(f"{asked.tables} tables of one region, {asked.versions} of them altered")
    for kept in (1, asked.versions):
        gc.collect()
        tracemalloc.start()
        versions: deque[Catalog] = deque([catalog_of(ref, parts)], maxlen=kept)
        alter(versions, asked.versions)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        print(f"{kept:6} versions kept: {held / (1 << 20):8.1f} MiB", flush=True)


def alter(versions: deque[Catalog], count: int) -> None:
    """Alters one table in each version; tables far from one another share the least."""
    ids = list(versions[0].tables)
    for number in range(count):
        newest = versions[-1]
        table = newest.tables[ids[number * STEP % len(ids)]]
        options = {**table.info.options, "comment": f"altered {number}"}
        info = table.info.model_copy(update={"options": options, "version": table.info.version + 1})
        update = CatalogUpdate(
            version=newest.version + 1,
            at_ms=newest.at_ms + 1,
            procedure=None,
            entries=(TableAltered(info=info),),
        )
        versions.append(newest.apply(update, newest.revision + 1))


if __name__ == "__main__":
    main()
