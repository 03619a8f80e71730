"""Differences of a table and its declaration that no operation removes, each with the reason. Pure.

They need another table, into which the rows are copied.
"""

from collections.abc import Iterator

from metasrv.service.declared.canonical import check_columns, partition_key
from metasrv.service.declared.operations import DeclaredPlan
from metasrv.service.declared.table_elements import kept_constraints, kept_indexes
from metasrv_base.errors import Refused
from metasrv_base.schema.conversion import conversion_of
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.api.tables import HashPartition
from metasrv_base.wire.language.declared import DeclaredConstraint, DeclaredTable

DEFAULT = "default"
COPY = "make a table with another name and copy the rows"


def default_partition(table: DeclaredTable, partitions: int) -> HashPartition:
    """The partition of a table that says nothing of it. *partitions*: of its placement."""
    columns = table.primary_key if partitions == 1 else table.colocation_columns
    return HashPartition(by="hash", columns=columns or table.primary_key, count=partitions)


def refuse_what_stays(
    before: DeclaredTable, desired: DeclaredTable, partitions: int, pointer: str, plan: DeclaredPlan
) -> None:
    """Adds a refusal to *plan* for each difference that needs another table.

    *before*: the table as it is, with the new names of columns that are renamed.
    """
    if before.primary_key != desired.primary_key:
        was = ", ".join(before.primary_key)
        plan.refuse(f"{pointer}/primary_key", f"it is ({was}), and rows are kept by it: {COPY}")
        return
    for field, reason in _other_fields(before, desired, partitions):
        plan.refuse(f"{pointer}/{field}", reason)


def _other_fields(
    before: DeclaredTable, desired: DeclaredTable, partitions: int
) -> Iterator[tuple[str, str]]:
    desired_partition = desired.partition or default_partition(desired, partitions)
    there = before.partition or default_partition(before, partitions)
    if partition_key(desired.model_copy(update={"partition": desired_partition})) != partition_key(
        before.model_copy(update={"partition": there})
    ):
        yield "partition", f"it is by {_partition(before, partitions)}, and rows stay: {COPY}"
    if before.colocation_columns != desired.colocation_columns:
        yield "colocation_columns", f"they are part of the partitioning: {COPY}"
    for field in ("placement", "tablespace"):
        was, new = getattr(before, field) or DEFAULT, getattr(desired, field) or DEFAULT
        if was != new:
            yield field, f"it is {was}, and regions are not moved by an alter: {COPY}"
    was, new = before.storage_profile or DEFAULT, desired.storage_profile
    if new is not None and was != new:
        yield "storage_profile", f"it is {was}, and regions keep their engine: {COPY}"


def _partition(table: DeclaredTable, partitions: int) -> str:
    partition = table.partition or default_partition(table, partitions)
    columns = ", ".join(partition.columns)
    if isinstance(partition, HashPartition):
        return f"hash of ({columns}), {partition.count} regions"
    return f"range of ({columns}), {len(partition.bounds) + 1} regions"


def refuse_types(
    before: DeclaredTable, desired: DeclaredTable, pointer: str, plan: DeclaredPlan
) -> None:
    """Refuses changes of type that the alter of a table refuses."""
    there = {column.name: column for column in before.columns}
    for position, column in enumerate(desired.columns):
        old = there.get(column.name)
        if old is None or parse_type(old.type) == parse_type(column.type):
            continue
        reason = _type_reason(before, desired, column.name, old.type, column.type)
        if reason is not None:
            plan.refuse(f"{pointer}/columns/{position}/type", reason)


def _type_reason(
    before: DeclaredTable, desired: DeclaredTable, name: str, old: str, new: str
) -> str | None:
    if name in before.primary_key:
        return f"the column is part of the primary key, whose type stays {old}: {COPY}"
    for index in kept_indexes(before, desired).values():
        if name in index.columns:
            return f"index {index.name} is over it: apply without the index first, then with it"
    for constraint in kept_constraints(before, desired).values():
        if is_over(before, constraint, name):
            return f"constraint {constraint.name} is over it: apply without it first, then with it"
    try:
        conversion_of(parse_type(old), parse_type(new))
    except Refused:
        return f"values of {old} cannot be converted to {new}: declare another column"
    return None


def is_over(table: DeclaredTable, constraint: DeclaredConstraint, column: str) -> bool:
    if constraint.check is None:
        return constraint.not_null == column
    return column in check_columns(constraint.check, [each.name for each in table.columns])
