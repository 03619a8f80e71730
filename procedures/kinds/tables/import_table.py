"""import_table: imports the rows of Parquet files into a table, all of them or none.

Every region reserves a row version for them; a job writes them as sorted files for their regions;
every region checks its files. Then the import passes its point of no return, and each region takes
its files in one manifest (decision 0098). An imported row replaces the older row of its key; rows
that were written after the version was reserved replace the imported one.
"""

from keys.model.records import Lock, Resource
from metasrv_base.errors import Refused
from metasrv_base.wire.api.imports import ImportBody
from procedures.context import Context
from procedures.elements.reorg import Runs, joined
from procedures.locking.locks import exclusive, in_schema, table_key
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.importing import (
    ImportedFiles,
    ImportInput,
    left,
    load_files,
    moved,
    nowhere,
    offer,
    refuse_indexes,
    refused_by,
    rewritten,
)
from procedures.steps.marks import close_marks, reserve_versions
from procedures.steps.requirements import required_table
from procedures.steps.transitions import read_table

IMPORT_MS = 86_400_000
"""Limit of an import of any size; an operator may cancel it earlier."""
REFUSALS_MAX = 8  # before it is decided; more are not by chance
REFUSED_REST_MS = 10_000  # behind the decision, before everything is read again for a region


class ImportTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    paths: tuple[str, ...]
    read: ImportInput | None = None
    """The result of the job; None if no job has ended yet."""
    written: tuple[ImportedFiles, ...] = ()
    """Files of the regions that receive rows."""
    taken: Runs = ()
    """Numbers of regions that have them."""
    refusals: int = 0
    decided: bool = False
    """Whether the point of no return has been passed."""


async def begin(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Checks that the table is still the one that the client named, and has no indexes."""
    _, info = await required_table(context, state)
    refuse_indexes(info)
    return Goto("mark", state)


async def mark(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Has every region reserve a row version, by a mark."""
    _, info, route = await read_table(context, state.table_id)
    await reserve_versions(context, info, route)
    return Goto("load", state)


async def unmark(state: ImportTable, context: Context) -> None:
    """Closes the marks. Files that jobs have written become obsolete."""
    await close_marks(context, state.table_id)


async def load(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Has a job write the files of all regions, or of those that have another leader since."""
    _, info, route = await read_table(context, state.table_id)
    digest = None if state.read is None else state.read.digest
    due = moved(left(state.written, state.taken), route)
    regions = route.region_routes if state.read is None else due
    if not regions:
        return Goto("prepare", state)
    read, written = await load_files(context, (info, route), state.paths, regions, digest)
    update = {"read": read, "written": rewritten(state.written, written)}
    return Goto("prepare", state.model_copy(update=update))


async def prepare(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Has every region check its files and make them durable. Refusals come here, before the point
    of no return."""
    _, info, route = await read_table(context, state.table_id)
    waiting = left(state.written, state.taken)
    if moved(waiting, route):
        return Goto("load", state)
    answers = await offer(context, (info, route), waiting, prepares=True)
    if refused := refused_by(waiting, route, answers):
        if state.refusals >= REFUSALS_MAX and not state.decided:
            raise Refused("invalid-request", regions=sorted(refused), reason="they refuse it")
        return Goto("load", _again(state, refused))
    answers.must_all_succeed()
    return Goto("decide", state)


async def decide(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Passes the point of no return: from here on regions take their files one by one."""
    return Goto("take", state.model_copy(update={"decided": True}))


async def take(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Orders the regions to take their files. Files of a region whose leader is gone are written
    again."""
    _, info, route = await read_table(context, state.table_id)
    waiting = left(state.written, state.taken)
    gone = {region.number for region in moved(waiting, route)}
    here = [imported for imported in waiting if imported.region not in gone]
    answers = await offer(context, (info, route), here, prepares=False)
    taken, ids = state.taken, {region.number: region.region_id for region in route.region_routes}
    for imported in here:
        result = answers.results.get(ids[imported.region])
        if result is not None and result.error is None:
            taken = joined(taken, imported.region)
    after = state.model_copy(update={"taken": taken})
    refused = refused_by(here, route, answers)
    if not left(after.written, taken):
        return Goto("close", after)
    if refused:
        await context.live.rest(REFUSED_REST_MS)
    if gone or refused:
        return Goto("load", _again(after, refused))
    if taken == state.taken:
        answers.must_all_succeed()
    return Goto("take", after)


async def close(state: ImportTable, context: Context) -> Outcome[ImportTable]:
    """Closes the marks."""
    await close_marks(context, state.table_id)
    assert state.read is not None, "it was read before anything was taken"
    body = ImportBody(
        table_id=state.table_id,
        name=f"{state.catalog}.{state.schema_name}.{state.name}",
        rows=state.read.rows,
        files=state.read.files,
        bytes=state.read.bytes,
        regions=len(state.written),
    )
    return Done(state, body.model_dump(mode="json"))


def _again(state: ImportTable, regions: set[int]) -> ImportTable:
    """Returns the state in which *regions* are written again."""
    written = nowhere(state.written, regions)
    return state.model_copy(update={"written": written, "refusals": state.refusals + 1})


def locks(state: ImportTable) -> tuple[Lock, ...]:
    """Returns the locks, which exclude changes of the schema and other procedures with marks."""
    return in_schema(state.catalog, state.schema_name, exclusive(table_key(state.table_id)))


def resource(state: ImportTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


IMPORT_TABLE = Kind(
    name="import_table",
    state=ImportTable,
    steps={
        "begin": Step(begin, to=frozenset({"mark"})),
        "mark": Step(mark, to=frozenset({"load"}), undo=unmark, waits=True),
        "load": Step(load, to=frozenset({"prepare"}), waits=True, paced=True),
        "prepare": Step(prepare, to=frozenset({"load", "decide"}), waits=True),
        "decide": Step(decide, to=frozenset({"take"})),
        "take": Step(take, to=frozenset({"take", "load", "close"}), waits=True),
        "close": Step(close, waits=True),
    },
    no_return="decide",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=IMPORT_MS,
    report=ImportBody,
)
