"""Constraints and indexes of a table and of its declaration: which stay, go and come. Pure."""

from collections.abc import Iterator

from metasrv.service.declared.canonical import check_of
from metasrv.service.declared.operations import DeclaredName, DeclaredPlan
from metasrv_base.wire.api.changes import AddConstraint, AlterOperation, ValidateConstraint
from metasrv_base.wire.api.tables import IndexSpec
from metasrv_base.wire.language import apply
from metasrv_base.wire.language.declared import DeclaredConstraint, DeclaredIndex, DeclaredTable

UNENFORCED = "rows may break it from then on"


def kept_constraints(
    before: DeclaredTable, desired: DeclaredTable
) -> dict[str, DeclaredConstraint]:
    """Constraints of *before*, by name, that the declaration says alike."""
    names = {each.name: _rule(desired, each) for each in desired.constraints}
    return {
        each.name: each
        for each in before.constraints
        if each.name in names and names[each.name] == _rule(before, each)
    }


def _rule(table: DeclaredTable, constraint: DeclaredConstraint) -> tuple[str, str]:
    if constraint.check is None:
        return "not null", str(constraint.not_null)
    return "check", check_of(constraint.check, [column.name for column in table.columns])


def added_constraints(before: DeclaredTable, desired: DeclaredTable) -> Iterator[AlterOperation]:
    kept = kept_constraints(before, desired)
    for each in desired.constraints:
        if each.name not in kept:
            yield AddConstraint(
                op="add_constraint",
                name=each.name,
                check=each.check,
                not_null=each.not_null,
                not_valid=each.not_valid,
            )
        elif kept[each.name].not_valid and not each.not_valid:
            yield ValidateConstraint(op="validate_constraint", name=each.name)


def kept_indexes(before: DeclaredTable, desired: DeclaredTable) -> dict[str, DeclaredIndex]:
    """Indexes of *before*, by name, that the declaration has with the same columns."""
    names = {each.name: (each.columns, each.unique) for each in desired.indexes}
    return {
        each.name: each
        for each in before.indexes
        if names.get(each.name) == (each.columns, each.unique)
    }


def drop_indexes(
    name: DeclaredName, before: DeclaredTable, desired: DeclaredTable, plan: DeclaredPlan
) -> None:
    kept = kept_indexes(before, desired)
    for index in before.indexes:
        if index.name not in kept:
            drop = apply.DropsIndex(drop_index=_index(name, index.name))
            loss = "no two rows need to differ from then on" if index.unique else "reads lose it"
            plan.add(name.object, drop, f"drop index {index.name}", loss)


def create_indexes(
    name: DeclaredName, before: DeclaredTable, desired: DeclaredTable, plan: DeclaredPlan
) -> None:
    kept = kept_indexes(before, desired)
    for index in desired.indexes:
        if index.name not in kept:
            spec = IndexSpec(
                name=index.name,
                columns=index.columns,
                unique=index.unique,
                not_valid=index.not_valid,
            )
            what = "unique index" if index.unique else "index"
            text = f"create {what} {index.name} ({', '.join(index.columns)})"
            plan.add(name.object, apply.CreatesIndex(create_index=_to_create(name, spec)), text)
        elif kept[index.name].not_valid and not index.not_valid:
            validate = apply.ValidatesIndex(validate_index=_index(name, index.name))
            plan.add(name.object, validate, f"validate index {index.name}")


def _to_create(name: DeclaredName, spec: IndexSpec) -> apply.IndexToCreate:
    return apply.IndexToCreate(
        catalog=name.catalog, schema_name=name.schema, table=name.table, index=spec
    )


def _index(name: DeclaredName, index: str) -> apply.IndexOfTable:
    return apply.IndexOfTable(
        catalog=name.catalog, schema_name=name.schema, table=name.table, index=index
    )
