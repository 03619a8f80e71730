"""Whether the rows of a table satisfy new constraints and types: every region, at its mark.

Who writes checks them since they are write-only, which is settled before a mark is opened. So if
every row below the marks satisfies them, every row does. Nothing is written: a look may be taken
again, by anybody.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from pydantic import JsonValue

from keys.model.tables import Column, Constraint, ConstraintKind, RegionRoute, TableInfo
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import Refused
from metasrv_base.schema.keycodec import decode
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import to_json
from metasrv_base.wire.node.jobs import RowCheck, ValidateJob, ValidateResult
from metasrv_base.wire.node.offenders import ViolatingRow, first_within
from procedures.context import Context
from procedures.elements.reorg import OFFENDERS_MAX
from procedures.engine.record_transitions import FACTS_CHARS_MAX
from procedures.steps.job_pace import run_at_pace
from procedures.steps.marks import current_snapshot

REGIONS_AT_ONCE = 8
"""Jobs of one round; then what was found is in the record."""


async def look_at(
    context: Context,
    info: TableInfo,
    regions: Sequence[RegionRoute],
    constraints: Sequence[Constraint],
    columns: Sequence[Column],
) -> None:
    """Returns if all rows of *regions* satisfy all of *constraints*, and can be rows of *columns*,
    which come in the place of others. Raises Refused `check-violation` with the first rows that do
    not; Unavailable while a region cannot be read."""
    checks = [*map(row_check, constraints), *map(_type_check, columns)]
    calls = [partial(_look_at_one, context, region, checks) for region in regions]
    results = await run_at_pace(
        context, check_jobs(context, regions), partial(fan_out, calls, at_once=REGIONS_AT_ONCE)
    )
    total = sum(result.violations_total for result in results)
    if not total:
        return
    violations = [violation for result in results for violation in result.violations][
        :OFFENDERS_MAX
    ]
    names = {constraint.id: constraint.name for constraint in constraints}
    names |= {_number(column): f"type {column.type} of column {column.name}" for column in columns}
    raise Refused(
        "check-violation",
        name=", ".join(sorted({names[violation.constraint] for violation in violations})),
        total=total,
        violations=first_within(_shown(info, violations, names), FACTS_CHARS_MAX),
    )


def check_jobs(context: Context, regions: Iterable[RegionRoute]) -> list[str]:
    """Names of the jobs that look at *regions*, one each."""
    return [f"{context.procedure}-{region.region_id}-check" for region in regions]


async def _look_at_one(
    context: Context, region: RegionRoute, checks: list[RowCheck]
) -> ValidateResult:
    snapshot = await current_snapshot(context, region)
    (job_id,) = check_jobs(context, [region])
    job = ValidateJob(
        job_id=job_id,
        procedure=context.procedure,
        snapshot=snapshot,
        checks=checks,
        rows_per_s=context.wanted_rows_per_s(),
    )
    return await context.ports.jobs.validate(job, progress=context.progress)


def row_check(constraint: Constraint) -> RowCheck:
    is_check = constraint.kind is ConstraintKind.CHECK
    return RowCheck(
        constraint=constraint.id,
        kind="check" if is_check else "not-null",
        columns=list(constraint.columns),
        expression=constraint.expression,
    )


def _type_check(column: Column) -> RowCheck:
    assert column.replaces is not None, "it comes in the place of another"
    return RowCheck(
        constraint=_number(column),
        kind="convertible",
        columns=[column.replaces],
        to_type=column.type,
    )


def _number(column: Column) -> int:
    """Returns the number under which a column's own faults are counted, distinct from ids of
    constraints."""
    return -column.id


def _shown(
    info: TableInfo, violations: Sequence[ViolatingRow], names: Mapping[int, str]
) -> Iterator[dict[str, object]]:
    """Yields the violations in the form for people: columns by name, keys as values."""
    for violation in violations:
        yield {
            "constraint": names[violation.constraint],
            "key": named_key(info, violation.row_key),
            "values": named_values(info, violation.values),
        }


def named_key(info: TableInfo, row_key: str) -> dict[str, JsonValue]:
    """A hexadecimal row key as JSON forms by column. Raises Corrupt if it is none."""
    columns = {column.id: column for column in info.columns}
    key = [columns[id] for id in info.primary_key]
    types = [parse_type(column.type) for column in key]
    parts = zip(key, types, decode(types, bytes.fromhex(row_key)), strict=True)
    return {column.name: to_json(type, value) for column, type, value in parts}


def named_values(info: TableInfo, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Replaces the column ids of *values* by names."""
    names = {str(column.id): column.name for column in info.columns}
    return {names[id]: value for id, value in values.items()}
