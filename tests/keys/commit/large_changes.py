"""Changes of a catalog whose keys are written after their version, in small pieces."""

from collections.abc import Sequence

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.known import CatalogByKey
from keys.commit.change import copies_of
from keys.commit.staging import StagingSizes
from keys.commit.txn import Copies, LargeChange, Txn
from keys.model.catalogs import SchemaInfo
from keys.model.log import Entry, SchemaCreated, TableCreated, TableDropped, TableRenamed
from metasrv_base.concurrency.turns import at_once
from tests.procedures.harness.tables import table_info, table_route

SMALL = StagingSizes(part_bytes=800, chunk_ops=3)
BY = "019aa5d3-1c00-7abc-8def-0123456789ab"


def large(follower: Follower, *entries: Entry) -> Txn:
    """*entries*, on whatever the catalog is by then."""

    async def copies(version: int | None) -> Copies | None:
        catalog = follower.catalog
        if version not in (None, catalog.version):
            return None
        return at_once(copies_of(entries, CatalogByKey(catalog)))

    return Txn(entries=entries, large=LargeChange(copies))


def schema_of_tables(name: str, first_id: int, tables: int) -> Sequence[Entry]:
    """A schema, and tables in it with a region each."""
    info = SchemaInfo(schema_id=first_id, catalog="main", name=name, created_at_ms=1)
    entries: list[Entry] = [SchemaCreated(info=info)]
    for number in range(tables):
        table_id = first_id + number
        table = table_info(table_id, f"t{number}", 1, name)
        entries.append(TableCreated(info=table, route=table_route(table_id, ("dn-1",))))
    return entries


def mixed(catalog: Catalog, first_id: int) -> Sequence[Entry]:
    """Changes of the first two tables of a schema of `schema_of_tables`: a drop whose name a rename
    takes, a create that takes that one's, and others."""
    second = catalog.tables[first_id + 1].info
    schema = second.schema_name
    renamed = second.model_copy(update={"name": "t0", "version": second.version + 1})
    news = [table_info(first_id + 10 + n, f"t{(1, 7, 8, 9)[n]}", 1, schema) for n in range(4)]
    return (
        TableDropped(table_id=first_id, dropped_at_ms=5, dropped_by=BY),
        TableRenamed(info=renamed),
        *(TableCreated(info=new, route=table_route(new.table_id, ("dn-1",))) for new in news),
    )
