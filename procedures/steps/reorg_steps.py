"""A reorg as steps act: marks are opened, rows are read in rounds, regions take what was made.

Thin: what is next, and what becomes of it, is said in procedures/elements/reorg.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from keys.model.tables import Index, RegionRoute, TableInfo, TableRoute
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Conflict, Refused
from metasrv_base.schema.keycodec import decode
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import to_json
from metasrv_base.wire.node.jobs import JobIndex
from metasrv_base.wire.node.offenders import Duplicate, Offenders, first_within
from metasrv_base.wire.node.orders import DataFile, IngestFiles
from procedures.context import Context
from procedures.elements.reorg import (
    OFFENDERS_MAX,
    BuiltFiles,
    IndexReorg,
    Offender,
    Taken,
    in_turn,
    pending,
    surveyed,
    with_taken,
)
from procedures.steps.marks import open_marks, snapshots
from procedures.steps.region_orders import (
    NODES_AT_ONCE_MAX,
    UNNUMBERED,
    is_gone,
    not_gone,
    order_one,
)
from procedures.steps.reorg_round import Round

ROWS_CHARS_MAX = 8_192  # as JSON, of the rows that are named of one value: a key may take KiB
REFUSALS_MAX = 8  # rounds in a row that no region takes anything of: it is not by chance


@dataclass(frozen=True, slots=True)
class IndexToFill:
    """The table whose index is filled, as the step found it."""

    info: TableInfo
    route: TableRoute
    index: Index

    @classmethod
    def of(cls, info: TableInfo, route: TableRoute, index: int) -> "IndexToFill":
        return cls(
            info, route, next(candidate for candidate in info.indexes if candidate.id == index)
        )


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A region would not have what was made of its rows."""

    why: Refused | Conflict


async def begin_reorg(context: Context, table: IndexToFill) -> IndexReorg:
    """Opens the marks, and counts what there is to read."""
    marked = await open_marks(context, table.info, table.route)
    by_region = await snapshots(context, marked)
    rows = {region_id: snapshot.rows for region_id, snapshot in by_region.items()}
    reorg = surveyed(table.index.id, table.route.region_routes, rows)
    p99_ms = context.ports.schema_sync.statement_p99_ms()
    return reorg.model_copy(update={"p99_before_ms": p99_ms})


async def continue_reorg(
    context: Context, table: IndexToFill, reorg: IndexReorg
) -> IndexReorg | None:
    """The next round, or what regions say to the last one. None: nothing is left to do.

    Raises Refused or Conflict once regions refuse again and again what is made for them.
    """
    if reorg.made:
        return await _take_round(context, table, reorg)
    waiting = pending(reorg, not_gone(table.info, table.route))
    if not waiting:
        return None
    index = JobIndex(
        id=table.index.id, columns=list(table.index.columns), unique=table.index.unique
    )
    turn = in_turn(reorg, waiting, context.ports.reorg_width.regions)
    return await Round(context, reorg, index, context.ports.clock.mono_ms()).run(turn)


async def _take_round(context: Context, table: IndexToFill, reorg: IndexReorg) -> IndexReorg:
    regions = {region.number: region for region in table.route.region_routes}
    takes = [partial(_take, context, table, regions[made.region], made) for made in reorg.made]
    answers = await fan_out(takes, at_once=NODES_AT_ONCE_MAX)
    taken = [answer for answer in answers if isinstance(answer, Taken)]
    refusals = [answer for answer in answers if isinstance(answer, NotTaken)]
    after = with_taken(reorg, taken)
    if refusals and after.refusals >= REFUSALS_MAX:
        raise refusals[0].why
    return after


async def _take(
    context: Context, table: IndexToFill, region: RegionRoute, made: BuiltFiles
) -> Taken | NotTaken | None:
    """Orders a region to take the built files. Returns None if it cannot: it has another leader
    now, which does not look where the files are, or it is lost for good."""
    if region.epoch != made.epoch or is_gone(table.info, region):
        return None
    if not made.files:
        return Taken(made)
    order = IngestFiles(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        procedure=context.procedure,
        attempt=made.attempt,
        index=table.index.id,
        mark=context.procedure,
        files=[DataFile.model_validate(file) for file in made.files],
        unique_columns=list(table.index.columns) if table.index.unique else [],
    )
    try:
        await order_one(context, region.leader, order)
    except (Refused, Conflict) as error:
        if error.code != "unique-violation":
            return NotTaken(error)
        offenders = Offenders.model_validate(error.facts)
        return Taken(made, offenders.total, offenders_of(table.info, offenders.duplicates))
    return Taken(made)


def offenders_of(info: TableInfo, duplicates: Sequence[Duplicate]) -> tuple[Offender, ...]:
    """Returns the offenders, with primary keys as users write them."""
    columns = {column.id: column for column in info.columns}
    types = [parse_type(columns[column_id].type) for column_id in info.primary_key]

    def row(key: str) -> tuple[object, ...]:
        values = decode(types, bytes.fromhex(key))
        return tuple(to_json(type, value) for type, value in zip(types, values, strict=True))

    return tuple(
        Offender(
            values=tuple(duplicate.values),
            rows=tuple(first_within(map(row, duplicate.row_keys), ROWS_CHARS_MAX)),
        )
        for duplicate in duplicates[:OFFENDERS_MAX]
    )


def violation(info: TableInfo, index: Index, reorg: IndexReorg) -> Refused:
    """Rows that a unique index cannot have: values and keys by column name, as those that break a
    constraint."""
    names = {column.id: column.name for column in info.columns}
    key = [names[id] for id in info.primary_key]
    columns = [names[id] for id in index.columns]
    duplicates = [  # not strict: what is told of a fault is no reason for another
        {
            "values": dict(zip(columns, offender.values, strict=False)),
            "rows": [dict(zip(key, row, strict=False)) for row in offender.rows],
        }
        for offender in reorg.offenders
    ]
    return Refused(
        "unique-violation", index=index.name, total=reorg.duplicates, duplicates=duplicates
    )
