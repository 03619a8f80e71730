"""`metasrv backup restore`: a backup becomes a cluster of its own, by etcd alone."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from metasrv.cli.progress import bar
from metasrv.cli.tools.backup_files import pieces, source_facts

if TYPE_CHECKING:
    from metasrv.restore.backup_facts import BackupFacts
    from metasrv.restore.restore import RestoredCluster


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """Where to; `access`: settings of StoreAccess beside the endpoints."""

    etcd: str
    prefix: str
    access: Mapping[str, Path | str | None]


def parts_of(file: Path, words: str) -> Iterator[bytes]:
    with file.open("rb") as opened:
        yield from pieces(opened, words)


def planned(file: Path) -> "BackupFacts":
    """Reads the whole file, and writes nothing."""
    from metasrv.restore.backup_facts import read_backup_facts

    return read_backup_facts(parts_of(file, f"read {file}"))


def restored(file: Path, target: RestoreTarget, *, again: bool) -> "RestoredCluster":
    """Raises ValueError if etcd may not be reached so, and as `metasrv.restore.restore`."""
    return asyncio.run(_restored(file, target, again=again))


async def _restored(file: Path, target: RestoreTarget, *, again: bool) -> "RestoredCluster":
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
                again=again,
                tell=lambda doing, done, total: shown.tell(f"{words}: {doing}", done, total),
            )
    finally:
        await kv.close()


def plan_document(facts: "BackupFacts") -> dict[str, object]:
    return {
        **source_facts(facts),
        "catalog_version": facts.version.version,
        "tables": facts.counts["TableInfo"],
        "regions": facts.regions,
        "nodes": list(facts.nodes),
        "dropped_tables": facts.counts["RemovedTableInfo"],
        "procedures": [
            {
                "id": active.procedure,
                "kind": active.kind,
                "of": active.resource,
                "step": active.step,
            }
            for active in facts.procedures
        ],
    }


def show_plan(facts: "BackupFacts") -> None:
    from metasrv.cli.output import show_facts, show_table

    said = plan_document(facts)
    said |= {"nodes": ", ".join(facts.nodes), "procedures": facts.counts["Procedure"]}
    show_facts(said)
    if facts.procedures:
        typer.echo()
        rows = [
            (active.procedure, active.kind, active.resource, active.step)
            for active in facts.procedures
        ]
        show_table(("procedure", "kind", "of", "step"), rows)


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
