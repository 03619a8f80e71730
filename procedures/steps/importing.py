"""A bulk load as steps act: a job writes files for every region, and each takes its own.

What a region was written at an epoch that the route no longer names lies under the root of another
leader: it is written again, from the same files. Their digest is in the record, so that no two
regions are given the rows of different files.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from keys.model.elements import graph_of
from keys.model.tables import Column, ConstraintKind, RegionRoute, TableInfo, TableRoute
from keys.value import StoredPart
from metasrv_base.elements.graph import Act
from metasrv_base.errors import Refused
from metasrv_base.wire.node.jobs import LoadColumn, LoadJob, LoadJobResult, LoadRegion
from metasrv_base.wire.node.offenders import ViolatingRow
from metasrv_base.wire.node.orders import DataFile, IngestFiles, RegionColumn
from metasrv_base.wire.problem.problems import is_refusal
from procedures.context import Context
from procedures.elements.reorg import Runs, has
from procedures.steps.job_pace import run_at_pace
from procedures.steps.marks import reserve_versions
from procedures.steps.region_orders import UNNUMBERED, OrderAnswers, order_all, schema_order
from procedures.steps.validation import named_key, named_values, row_check

ROWS = 0
"""The family of rows."""
SHOWN_MAX = 100
"""Most rejected rows that are shown; further ones are only counted."""
NOWHERE = 0
"""An epoch that no region has: what was written is to be written again."""


class ImportedFiles(StoredPart):
    """Files that a job has written for one region, until its leader takes them."""

    region: int
    """Number of the region."""
    epoch: int
    """Epoch of the leader in whose root they are."""
    attempt: str
    """Folder of the files, relative to that root."""
    files: tuple[dict[str, object], ...]
    """Files in the form of `metasrv_base.wire.node.orders.DataFile`."""


class ImportInput(StoredPart):
    """The input of an import."""

    digest: str
    files: int
    rows: int
    bytes: int


# What is next -------------------------------------------------------------------------------------


def left(written: Iterable[ImportedFiles], taken: Runs) -> tuple[ImportedFiles, ...]:
    """Returns the files that regions have not taken yet."""
    return tuple(imported for imported in written if not has(taken, imported.region))


def moved(written: Iterable[ImportedFiles], route: TableRoute) -> tuple[RegionRoute, ...]:
    """Regions whose files do not lie where their leader looks."""
    epochs = {imported.region: imported.epoch for imported in written}
    regions = route.region_routes
    return tuple(
        region for region in regions if epochs.get(region.number, region.epoch) != region.epoch
    )


def rewritten(
    before: Iterable[ImportedFiles], now: Sequence[ImportedFiles]
) -> tuple[ImportedFiles, ...]:
    """*now* in place of what was written for the same regions before."""
    regions = {imported.region for imported in now}
    merged = [*(imported for imported in before if imported.region not in regions), *now]
    return tuple(sorted(merged, key=lambda imported: imported.region))


def refused_by(
    written: Iterable[ImportedFiles], route: TableRoute, answers: OrderAnswers
) -> set[int]:
    """Numbers of regions that will never take what was written for them."""
    codes = answers.failed()
    ids = {region.number: region.region_id for region in route.region_routes}
    return {
        imported.region for imported in written if is_refusal(codes.get(ids[imported.region], ""))
    }


def nowhere(written: Iterable[ImportedFiles], regions: set[int]) -> tuple[ImportedFiles, ...]:
    return tuple(
        imported.model_copy(update={"epoch": NOWHERE}) if imported.region in regions else imported
        for imported in written
    )


def refuse_indexes(info: TableInfo) -> None:
    """Rows that are replaced have entries, which a load does not know. Raises Refused."""
    if info.indexes:
        names = ", ".join(index.name for index in info.indexes)
        reason = f"drop {names} first, import, and create it again"
        raise Refused("invalid-schema-change", name=info.name, reason=reason)


# The job ------------------------------------------------------------------------------------------


async def load_files(
    context: Context,
    table: tuple[TableInfo, TableRoute],
    paths: Sequence[str],
    regions: Sequence[RegionRoute],
    digest: str | None,
) -> tuple[ImportInput, tuple[ImportedFiles, ...]]:
    """The rows that belong into *regions*, as files of theirs. Raises Refused for files that the
    table cannot take, naming what is wrong."""
    info, route = table
    versions = await reserve_versions(context, info, route)
    # A name of its own: what an earlier job still writes is in nobody's way.
    name = f"{context.procedure}-{context.ports.ids.procedure_id()}"
    job = LoadJob(
        job_id=name,
        procedure=context.procedure,
        attempt=f"attempts/{name}",
        paths=list(paths),
        columns=load_columns(info, route),
        key=list(info.primary_key),
        partition=info.partition,
        checks=[
            row_check(constraint)
            for constraint in info.constraints
            if constraint.kind is not ConstraintKind.UNIQUE
            and Act.CHECK in graph_of(constraint).behaviours[constraint.state].insert
        ],
        regions=[
            LoadRegion(number=region.number, root=region.root, version=versions[region.region_id])
            for region in regions
        ],
        input_digest=digest,
        rows_per_s=context.wanted_rows_per_s(),
    )
    result = await run_at_pace(
        context, [name], partial(context.ports.jobs.load, job, progress=context.progress)
    )
    refuse_offenders(info, result)
    epochs = {region.number: region.epoch for region in regions}
    written = tuple(
        ImportedFiles(
            region=loaded.number,
            epoch=epochs[loaded.number],
            attempt=job.attempt,
            files=tuple(file.model_dump() for file in loaded.files),
        )
        for loaded in result.regions
    )
    read = ImportInput(
        digest=result.input_digest,
        files=result.files_in,
        rows=result.rows_in,
        bytes=result.bytes_in,
    )
    return read, written


def load_columns(info: TableInfo, route: TableRoute) -> list[LoadColumn]:
    """All that rows of the table have, and what is said of each where a file says nothing."""
    orders: Mapping[int, RegionColumn] = {
        column.id: column for column in schema_order(info, route.region_routes[0]).columns
    }
    return [_load_column(column, orders[column.id]) for column in info.columns]


def _load_column(column: Column, stored: RegionColumn) -> LoadColumn:
    """Returns the column with the value that an insert would give it: a hidden column is filled,
    or reads as in older rows."""
    does = graph_of(column).behaviours[column.state]
    if does.visible:
        return LoadColumn(stored=stored, name=column.name, otherwise=column.default)
    has_default = column.default is not None or column.nullable
    fills = Act.FILL in does.insert and has_default
    otherwise = column.default if fills else column.origin_default
    return LoadColumn(stored=stored, name=None, otherwise=otherwise)


def refuse_offenders(info: TableInfo, result: LoadJobResult) -> None:
    """Raises Refused with the rows that the table cannot have."""
    keys = [named_key(info, key) for key in result.repeated[:SHOWN_MAX]]
    if result.violations_total:
        violations = result.violations[:SHOWN_MAX]
        raise Refused(
            "constraint-violated",
            name=", ".join(sorted({_broken(info, violation) for violation in violations})),
            reason=f"{result.violations_total} rows break it, and nothing was imported",
            total=result.violations_total,
            violations=[
                {
                    "constraint": _broken(info, violation),
                    "key": named_key(info, violation.row_key),
                    "values": named_values(info, violation.values),
                }
                for violation in violations
            ],
            repeated=keys,
        )
    if result.repeated_total:
        found_text = f"{result.repeated_total} keys that stand there more than once"
        raise Refused(
            "invalid-request",
            pointer="/paths",
            found=found_text,
            expected="each key once",
            repeated=keys,
        )


def _broken(info: TableInfo, violation: ViolatingRow) -> str:
    named = {constraint.id: constraint.name for constraint in info.constraints}
    if violation.constraint in named:
        return named[violation.constraint]
    (column,) = named_values(info, violation.values)
    return f"{column} is not nullable"


# The regions --------------------------------------------------------------------------------------


async def offer(
    context: Context,
    table: tuple[TableInfo, TableRoute],
    written: Sequence[ImportedFiles],
    *,
    prepares: bool,
) -> OrderAnswers:
    """Has regions look at what was written for them, or take it."""
    info, route = table
    by_number = {imported.region: imported for imported in written}
    regions = [region for region in route.region_routes if region.number in by_number]
    make = partial(_order, context.procedure, by_number, prepares)
    return await order_all(context, info, regions, make)


def _order(
    procedure: str,
    written: Mapping[int, ImportedFiles],
    prepares: bool,
    _info: TableInfo,
    region: RegionRoute,
) -> IngestFiles:
    imported = written[region.number]
    return IngestFiles(
        number=UNNUMBERED,
        region_id=region.region_id,
        epoch=region.epoch,
        procedure=procedure,
        attempt=imported.attempt,
        index=ROWS,
        mark=procedure,
        prepares=prepares,
        files=[DataFile.model_validate(file) for file in imported.files],
    )
