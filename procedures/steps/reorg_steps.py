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
from procedures.steps.region_orders import NODES_AT_ONCE_MAX, UNNUMBERED, order_one
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
        return cls(info, route, next(one for one in info.indexes if one.id == index))


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A region would not have what was made of its rows."""

    why: Refused | Conflict


async def begin_reorg(at: Context, table: IndexToFill) -> IndexReorg:
    """Opens the marks, and counts what there is to read."""
    marked = await open_marks(at, table.info, table.route)
    found = await snapshots(at, marked)
    rows = {region_id: one.rows for region_id, one in found.items()}
    reorg = surveyed(table.index.id, table.route.region_routes, rows)
    p99_ms = at.ports.schema_sync.statement_p99_ms()
    return reorg.model_copy(update={"p99_before_ms": p99_ms})


async def continue_reorg(at: Context, table: IndexToFill, reorg: IndexReorg) -> IndexReorg | None:
    """The next round, or what regions say to the last one. None: nothing is left to do.

    Raises Refused or Conflict once regions refuse again and again what is made for them.
    """
    if reorg.made:
        return await _take_round(at, table, reorg)
    waiting = pending(reorg, table.route.region_routes)
    if not waiting:
        return None
    index = JobIndex(
        id=table.index.id, columns=list(table.index.columns), unique=table.index.unique
    )
    turn = in_turn(reorg, waiting, at.ports.reorg_width.regions)
    return await Round(at, reorg, index, at.ports.clock.mono_ms()).run(turn)


async def _take_round(at: Context, table: IndexToFill, reorg: IndexReorg) -> IndexReorg:
    regions = {region.number: region for region in table.route.region_routes}
    takes = [partial(_take, at, table, regions[made.region], made) for made in reorg.made]
    answers = await fan_out(takes, at_once=NODES_AT_ONCE_MAX)
    taken = [one for one in answers if isinstance(one, Taken)]
    refusals = [one for one in answers if isinstance(one, NotTaken)]
    after = with_taken(reorg, taken)
    if refusals and after.refusals >= REFUSALS_MAX:
        raise refusals[0].why
    return after


async def _take(
    at: Context, table: IndexToFill, region: RegionRoute, made: BuiltFiles
) -> Taken | NotTaken | None:
    """None: another leads the region now, and the files are where it does not look."""
    if region.epoch != made.epoch:
        return None
    if not made.files:
        return Taken(made)
    order = IngestFiles(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        procedure=at.procedure,
        attempt=made.attempt,
        index=table.index.id,
        mark=at.procedure,
        files=[DataFile.model_validate(file) for file in made.files],
        unique_columns=list(table.index.columns) if table.index.unique else [],
    )
    try:
        await order_one(at, region.leader, order)
    except (Refused, Conflict) as error:
        if error.code != "unique-violation":
            return NotTaken(error)
        found = Offenders.model_validate(error.facts)
        return Taken(made, found.total, offenders_of(table.info, found.duplicates))
    return Taken(made)


def offenders_of(info: TableInfo, duplicates: Sequence[Duplicate]) -> tuple[Offender, ...]:
    """With primary keys as users write them."""
    columns = {column.id: column for column in info.columns}
    types = [parse_type(columns[one].type) for one in info.primary_key]

    def row(key: str) -> tuple[object, ...]:
        values = decode(types, bytes.fromhex(key))
        return tuple(to_json(type, value) for type, value in zip(types, values, strict=True))

    return tuple(
        Offender(
            values=tuple(one.values),
            rows=tuple(first_within(map(row, one.row_keys), ROWS_CHARS_MAX)),
        )
        for one in duplicates[:OFFENDERS_MAX]
    )


def violation(info: TableInfo, index: Index, reorg: IndexReorg) -> Refused:
    """Rows that a unique index cannot have: values and keys by column name, as those that break a
    constraint."""
    names = {column.id: column.name for column in info.columns}
    key = [names[id] for id in info.primary_key]
    columns = [names[id] for id in index.columns]
    found = [  # not strict: what is told of a fault is no reason for another
        {
            "values": dict(zip(columns, one.values, strict=False)),
            "rows": [dict(zip(key, row, strict=False)) for row in one.rows],
        }
        for one in reorg.offenders
    ]
    return Refused("unique-violation", index=index.name, total=reorg.duplicates, duplicates=found)
