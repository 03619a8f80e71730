"""`metasrv backup restore`: a backup becomes a cluster of its own, by etcd alone."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from metasrv.cli.progress import bar
from metasrv.cli.tools.backup_files import pieces
from metasrv.cli.tools.inventories import read_inventories
from metasrv.cli.tools.restore_plan import RestorePlan

if TYPE_CHECKING:
    from metasrv.restore.found_regions import FoundRegions
    from metasrv.restore.restore import RestoredCluster


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """The etcd and prefix that a backup is restored to; `access` are settings of StoreAccess beside
    the endpoints."""

    etcd: str
    prefix: str
    access: Mapping[str, Path | str | None]


def parts_of(file: Path, words: str) -> Iterator[bytes]:
    with file.open("rb") as opened:
        yield from pieces(opened, words)


def planned(file: Path, inventories: Sequence[str] = ()) -> RestorePlan:
    """Reads the whole file, and writes nothing. *inventories*: as `read_inventories`."""
    from metasrv.restore.backup_facts import read_backup_facts
    from metasrv.restore.comparison import compared

    words = f"read {file}"
    facts = read_backup_facts(parts_of(file, words))
    if not inventories:
        return RestorePlan(facts)
    held = read_inventories(inventories, facts.source.cluster_id)
    comparison = compared(lambda: parts_of(file, words), held)
    return RestorePlan(facts, comparison, tuple(sorted(held.nodes)))


def restored(
    file: Path, target: RestoreTarget, inventories: Sequence[str] = (), *, again: bool
) -> "RestoredCluster":
    """Raises ValueError if etcd may not be reached so, and as `metasrv.restore.restore`."""
    held = None
    if inventories:
        from metasrv.restore.backup_facts import read_backup_facts

        facts = read_backup_facts(parts_of(file, f"read {file}"))
        held = read_inventories(inventories, facts.source.cluster_id)
    return asyncio.run(_restored(file, target, held, again=again))


async def _restored(
    file: Path, target: RestoreTarget, held: "FoundRegions | None", *, again: bool
) -> "RestoredCluster":
    from metasrv.program.store_access import StoreAccess
    from metasrv.restore.restore import RestoreDeps, restore
    from metasrv_base.clock import SystemClock
    from metasrv_base.ids import RandomIds

    listed = [url.strip() for url in target.etcd.split(",") if url.strip()]
    urls = [url if "://" in url else f"http://{url}" for url in listed]
    access = StoreAccess.model_validate({"endpoints": urls, **target.access})
    kv = await access.connect(target.prefix.encode())
    clock = SystemClock()
    deps = RestoreDeps(kv, clock, RandomIds(clock))
    words = f"restore {file}"
    try:
        with bar(words) as shown:
            return await restore(
                deps,
                lambda: parts_of(file, words),
                inventories=held,
                again=again,
                tell=lambda doing, done, total: shown.tell(f"{words}: {doing}", done, total),
            )
    finally:
        await kv.close()


def result_document(made: "RestoredCluster") -> dict[str, object]:
    facts = made.facts
    return {
        "cluster_id": made.cluster_id,
        "restored_from": facts.source.cluster_id,
        "catalog_version": made.version.version,
        "tables": facts.counts["TableInfo"],
        "regions": facts.regions,
        "nodes_to_adopt": list(facts.nodes),
        "procedures_parked": made.parked,
        "procedures_ended": made.ended,
        "dropped_tables_purged": made.purged,
    }


def ways_on(made: "RestoredCluster") -> Iterator[str]:
    """Lines for what is to be done next."""
    yield "start the servers on this prefix, then adopt every node:"
    for node in made.facts.nodes:
        yield f"  metasrv node adopt {node}"
    if made.parked:
        yield "procedures that were under way are paused: metasrv procedure list --state paused"
