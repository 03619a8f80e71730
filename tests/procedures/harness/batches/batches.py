"""Batches to be crashed anywhere: what they are given, what they ask for, how they may end."""

from keys.model.catalogs import SchemaInfo
from keys.store.kv import Compare
from metasrv_base.errors import Refused
from procedures.kinds.alter.alter_operations import SetOptionsOperation
from procedures.kinds.alter.alter_table import AlterTable
from procedures.kinds.batch.batch import CommandBatch
from procedures.kinds.batch.members import Change, Miss
from procedures.kinds.namespaces.create_schema import CreateSchema
from procedures.kinds.namespaces.drop_schema import DropSchema
from procedures.kinds.tables.create_table import CreateTable
from procedures.kinds.tables.drop_table import DropTable
from procedures.kinds.tables.rename_table import RenameTable
from procedures.machine import ProcedureState
from tests.fakes.cluster import Cluster
from tests.procedures.harness.ends import (
    OTHER,
    TABLE,
    End,
    effects,
    is_true,
    knows_floor,
    no_rest,
    serving,
)
from tests.procedures.harness.tables import (
    NODES,
    put_schema,
    put_table,
    reserve_ids,
    table_info,
    table_route,
)

NEW, AGAIN = 1090, 1091


def change(kind: str, state: ProcedureState) -> Change:
    return Change(kind=kind, state=state.model_dump(mode="json"))


def create(table_id: int, name: str, leaders: tuple[str, ...], schema: str = "public") -> Change:
    info = table_info(table_id, name, len(leaders), schema)
    return change("create_table", CreateTable(info=info, route=table_route(table_id, leaders)))


def drop(table_id: int, name: str, schema: str = "public") -> Change:
    state = DropTable(catalog="main", schema_name=schema, name=name, table_id=table_id)
    return change("drop_table", state)


def rename(table_id: int, name: str, new_schema: str, new_name: str) -> Change:
    state = RenameTable(
        catalog="main",
        schema_name="public",
        name=name,
        table_id=table_id,
        new_schema=new_schema,
        new_name=new_name,
    )
    return change("rename_table", state)


def comment(table_id: int, schema: str, name: str) -> Change:
    options: dict[str, str | None] = {"comment": "batched"}
    state = AlterTable(
        catalog="main",
        schema_name=schema,
        name=name,
        table_id=table_id,
        operations=(SetOptionsOperation(options=options),),
    )
    return change("alter_table", state)


def new_schema(name: str) -> Change:
    info = SchemaInfo(schema_id=1031, catalog="main", name=name, created_at_ms=1)
    return change("create_schema", CreateSchema(info=info))


def gone(name: str) -> Miss:
    """`drop table if exists` of one that does not."""
    return Miss(kind="drop_table", name=name, id=None)


async def with_two_small_tables(cluster: Cluster, fence: Compare) -> None:
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    await put_table(cluster, fence, table_info(TABLE, "t", 1), ("dn-1",))
    await put_table(cluster, fence, table_info(OTHER, "u", 1), ("dn-2",))


async def with_a_node_that_refuses(cluster: Cluster, fence: Compare) -> None:
    await with_two_small_tables(cluster, fence)
    cluster.plane.nodes["dn-3"].refuses["create"] = Refused("invalid-request", reason="test")


MIXED = CommandBatch(
    members=(
        new_schema("hr"),
        create(NEW, "new", ("dn-1", "dn-3"), "hr"),
        rename(TABLE, "t", "sales", "s"),
        drop(OTHER, "u"),
        create(AGAIN, "u", ("dn-2",)),
        comment(TABLE, "sales", "s"),
        gone("main.public.x"),
    )
)
"""Every command depends on the schema, the name or the table of one before it, or frees a name."""
MADE = CommandBatch(members=(create(NEW, "new", ("dn-1", "dn-3")), create(AGAIN, "v", ("dn-3",))))
SWEPT = CommandBatch(
    members=(
        create(NEW, "new", ("dn-3",)),
        change(
            "drop_schema",
            DropSchema(catalog="main", name="public", schema_id=1024, cascade=True),
        ),
    )
)
"""A schema goes with its tables, one of which was made a moment before."""
MISSED = CommandBatch(members=(gone("main.public.x"), gone("main.public.y")))


def all_done(end: End) -> list[str]:
    ops = ("schema.created", "table.created", "table.created", "table.renamed")
    ids = {name: info["table_id"] for name, info in end.tables().items()}
    named = {"hr.new": NEW, "sales.s": TABLE, "public.u": AGAIN}
    return [
        *effects(end, *ops, "table.altered", "table.altered", "table.dropped"),
        *is_true(ids == named, f"tables {ids}"),
        *is_true(end.tables()["sales.s"]["options"] == {"comment": "batched"}, "no comment"),
        *serving(end, NEW, epoch=1, rows=False),
        *serving(end, AGAIN, epoch=1, rows=False),
        *serving(end, TABLE, epoch=1),
        *knows_floor(end, NEW, above=0),
        *in_one_version(end, 6),
        *said(end, [True] * 6 + [False]),
        *no_rest(end),
    ]


def tables_made(end: End) -> list[str]:
    return [
        *effects(end, "table.created", "table.created"),
        *serving(end, NEW, epoch=1, rows=False),
        *serving(end, AGAIN, epoch=1, rows=False),
        *in_one_version(end, 2),
        *no_rest(end),
    ]


def schema_swept(end: End) -> list[str]:
    schemas = set(end.agreement.family("__schema_name"))
    ops = ("table.created", "schema.dropped", *["table.altered"] * 3, *["table.dropped"] * 3)
    open_regions = [n.serving for n in end.cluster.plane.nodes.values() if n.serving]
    return [
        *effects(end, *ops),
        *is_true(schemas == {("main", "sales")}, f"schemas {schemas}"),
        *is_true(not end.tables(), f"tables {end.tables()}"),
        *is_true(not open_regions, f"regions are open: {open_regions}"),
        *in_one_version(end, 5),
        *no_rest(end),
    ]


def nothing_to_do(end: End) -> list[str]:
    return [*effects(end), *said(end, [False, False])]


def in_one_version(end: End, entries: int) -> list[str]:
    """The batch made one version, with that many entries."""
    log = end.agreement.family("__catalog").items()
    updates = [update for where, update in log if where[0] == "update"]
    batch = next(
        procedure[0]
        for procedure, history in end.agreement.family("__procedure_history").items()
        if history["last"]["kind"] == "batch"
    )
    own = [update for update in updates if update["procedure"] == batch]
    made = [len(end.agreement.entries_of(update)) for update in own]
    return is_true(made == [entries], f"versions of {made} entries, not one of {entries}")


def said(end: End, applied: list[bool]) -> list[str]:
    histories = end.agreement.family("__procedure_history").values()
    (result,) = [each["result"] for each in histories if each["last"]["kind"] == "batch"]
    return is_true(result == {"applied": applied}, f"result {result}")
