"""check_table: checks all rows and entries of a table against its schema, and changes nothing.

Every region opens a mark once no holder uses an older version of the table. A job reads its data as
of the mark, some regions at a time; the faults are in the record (decision 0095). A check that
finds faults has succeeded. It holds the table's lock, since the schema must not change meanwhile:
changes of the table wait, statements do not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from pydantic import Field, JsonValue

from keys.model.records import Lock, Resource
from keys.model.tables import RegionRoute, TableInfo
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Corrupt
from metasrv_base.wire.node.checks import (
    CheckedIndex,
    DataFault,
    DataRule,
    TableCheckBody,
    TableFault,
)
from metasrv_base.wire.node.jobs import CheckJob, CheckResult
from metasrv_base.wire.node.offenders import first_within
from procedures.context import Context
from procedures.elements.reorg import Runs, has, joined
from procedures.locking.locks import exclusive, in_schema, table_key
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.job_pace import run_at_pace
from procedures.steps.marks import close_marks, current_snapshot, mark_everywhere
from procedures.steps.requirements import required_table
from procedures.steps.transitions import is_settled, read_table, settle
from procedures.steps.validation import (
    REGIONS_AT_ONCE,
    check_jobs,
    named_key,
    named_values,
    row_check,
)

CHECK_MS = 86_400_000
"""Limit of a check of a table of any size; an operator may cancel it earlier."""
FAULTS_KEPT = 100
"""And shown; the others are only counted. A record is rewritten with every round."""
FAULTS_CHARS_MAX = 32_768
"""Limit of the faults that are kept, in characters of JSON: the record and the result hold them."""


class CheckTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    looked: Runs = ()
    """Numbers of the regions that have been looked at."""
    rows: int = 0
    """Rows as of the marks."""
    entries: int = 0
    totals: dict[str, int] = Field(default_factory=dict)
    """Number of faults by rule."""
    faults: tuple[dict[str, object], ...] = ()
    """The first, as `metasrv_base.wire.node.checks.TableFault`."""


async def begin(state: CheckTable, context: Context) -> Outcome[CheckTable]:
    """Checks that the table is still the one that the client named."""
    await required_table(context, state)
    return Goto("settle", state)


async def settle_first(state: CheckTable, context: Context) -> Outcome[CheckTable]:
    """Publishes a version that every holder must reach, so that rows below the marks were
    written by the schema that they are checked against."""
    snapshot, info, _ = await read_table(context, state.table_id)
    if is_settled(info):
        return Goto("mark", state)
    return Goto("settle", state, await settle(context, snapshot, info))


async def mark(state: CheckTable, context: Context) -> Outcome[CheckTable]:
    """Opens a mark in every region."""
    _, info, route = await read_table(context, state.table_id)
    await mark_everywhere(context, info, route)
    return Goto("look", state)


async def unmark(state: CheckTable, context: Context) -> None:
    await close_marks(context, state.table_id)


async def look(state: CheckTable, context: Context) -> Outcome[CheckTable]:
    """Has jobs check some more regions. After a crash those of the last round are checked again."""
    _, info, route = await read_table(context, state.table_id)
    left = [region for region in route.region_routes if not has(state.looked, region.number)]
    if not left:
        return Goto("close", state)
    regions = left[:REGIONS_AT_ONCE]
    looks = [partial(_look_at, context, info, region) for region in regions]
    results = await run_at_pace(
        context, check_jobs(context, regions), partial(fan_out, looks, at_once=REGIONS_AT_ONCE)
    )
    for region, result in zip(regions, results, strict=True):
        state = _with_result(state, info, region, result)
    return Goto("look", state)


async def close(state: CheckTable, context: Context) -> Outcome[CheckTable]:
    """Closes the marks, and ends the procedure with the faults as its result."""
    await close_marks(context, state.table_id)
    body = TableCheckBody(
        table_id=state.table_id,
        name=f"{state.catalog}.{state.schema_name}.{state.name}",
        rows=state.rows,
        entries=state.entries,
        clean=not state.totals,
        totals={DataRule(rule): total for rule, total in state.totals.items()},
        faults=[TableFault.model_validate(fault) for fault in state.faults],
    )
    return Done(state, body.model_dump(mode="json"))


async def _look_at(context: Context, info: TableInfo, region: RegionRoute) -> CheckResult | None:
    """Checks the rows of one region; returns None if it has none."""
    snapshot = await current_snapshot(context, region, whole=True)
    if not snapshot.rows:
        return None
    (job_id,) = check_jobs(context, [region])
    job = CheckJob(
        job_id=job_id,
        procedure=context.procedure,
        snapshot=snapshot,
        owned=list(range(1, info.next_column_id)),
        required=[column.id for column in info.public_columns if not column.nullable],
        indexes=[
            CheckedIndex(
                id=index.id,
                columns=list(index.columns),
                unique=index.unique,
                complete=index.state is ElementState.PUBLIC,
            )
            for index in info.indexes
        ],
        checks=[
            row_check(constraint)
            for constraint in info.constraints
            if constraint.state is ElementState.PUBLIC
        ],
        rows_per_s=context.wanted_rows_per_s(),
    )
    return await context.ports.jobs.check(job, progress=context.progress)


def _with_result(
    state: CheckTable, info: TableInfo, region: RegionRoute, result: CheckResult | None
) -> CheckTable:
    looked = joined(state.looked, region.number)
    if result is None:
        return state.model_copy(update={"looked": looked})
    totals = Counter(state.totals)
    totals.update({rule.value: count for rule, count in result.faults.totals.items()})
    shown = _shown(info, region, result.faults.found[: FAULTS_KEPT - len(state.faults)])
    more = (fault.model_dump(mode="json") for fault in shown)
    return state.model_copy(
        update={
            "looked": looked,
            "rows": state.rows + result.rows_in,
            "entries": state.entries + result.entries,
            "totals": dict(totals),
            "faults": tuple(first_within((*state.faults, *more), FAULTS_CHARS_MAX)),
        }
    )


def _shown(
    info: TableInfo, region: RegionRoute, faults: Iterable[DataFault]
) -> Iterator[TableFault]:
    """Yields the faults in the form for people: columns by name, keys as values."""
    for fault in faults:
        yield TableFault(
            rule=fault.rule,
            region_id=region.region_id,
            element=_element(info, fault),
            keys=[_key(info, key) for key in fault.row_keys],
            values=named_values(info, fault.values),
            entry_key=fault.entry_key,
            file=fault.file,
            count=fault.count,
        )


def _key(info: TableInfo, row_key: str) -> dict[str, JsonValue] | str:
    """An entry may name what is no key of a row."""
    try:
        return named_key(info, row_key)
    except Corrupt:
        return row_key


def _element(info: TableInfo, fault: DataFault) -> str | None:
    if fault.element is None:
        return None
    indexes = {index.id: index.name for index in info.indexes}
    names = {
        DataRule.REQUIRED_MISSING: {column.id: column.name for column in info.columns},
        DataRule.ENTRY_MISSING: indexes,
        DataRule.ENTRY_WRONG: indexes,
        DataRule.CONSTRAINT_BROKEN: {
            constraint.id: constraint.name for constraint in info.constraints
        },
    }.get(fault.rule, {})
    if len(fault.row_keys) > 1:  # only rows that a unique index must not have together
        names = indexes
    return names.get(fault.element, str(fault.element))


def locks(state: CheckTable) -> tuple[Lock, ...]:
    return in_schema(state.catalog, state.schema_name, exclusive(table_key(state.table_id)))


def resource(state: CheckTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


CHECK_TABLE = Kind(
    name="check_table",
    state=CheckTable,
    steps={
        "begin": Step(begin, to=frozenset({"settle"})),
        "settle": Step(settle_first, to=frozenset({"settle", "mark"}), waits=True),
        "mark": Step(mark, to=frozenset({"look"}), undo=unmark, waits=True),
        "look": Step(look, to=frozenset({"look", "close"}), waits=True, paced=True),
        "close": Step(close, waits=True),
    },
    no_return="close",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=CHECK_MS,
    report=TableCheckBody,
)
