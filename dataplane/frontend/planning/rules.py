"""Whether new rows satisfy the constraints that are enforced by now. Pure."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.schema import ConstraintRule
from dataplane.frontend.planning.cases import Cases
from dataplane.frontend.planning.row_input import RowInput
from metasrv_base.elements.graph import Act
from metasrv_base.elements.graphs import CHECK_CONSTRAINT, NOT_NULL, UNIQUE_CONSTRAINT
from metasrv_base.errors import Refused

Columns = Mapping[int, pa.Array]


def check_rules(
    rules: Sequence[ConstraintRule], cases: Cases, statement_rows: RowInput, new: Columns
) -> None:
    """Raises Refused `constraint-violated` with the place of the first row that breaks one."""
    for rule in rules:
        checked = cases.where(rule.does, cases.sets(statement_rows, rule.columns), Act.CHECK)
        if not pc.any(checked).as_py():
            continue
        broken = _BREAKS[rule.kind](rule, new)
        if broken is None:
            continue
        row = pc.index(pc.and_(checked, broken), True).as_py()
        if row >= 0:
            names = ", ".join(column.name for column in rule.columns)
            is_null = rule.kind == NOT_NULL.name
            raise Refused(
                "constraint-violated",
                pointer=f"/rows/{statement_rows.place(row)}",
                name=rule.name,
                reason=f"{names} is null" if is_null else f"its condition on {names} is false",
            )


def _is_null(rule: ConstraintRule, new: Columns) -> pa.BooleanArray:
    mask = pc.is_null(new[rule.columns[0].id])
    for column in rule.columns[1:]:
        mask = pc.or_(mask, pc.is_null(new[column.id]))
    return mask


def _seen_by_its_index(rule: ConstraintRule, new: Columns) -> None:
    """Finds no rows: the constraint's unique index has its keys, and is checked like every
    other."""


def _is_false(rule: ConstraintRule, new: Columns) -> pa.BooleanArray:
    assert rule.check is not None, "a check has a condition"
    return rule.check.broken(new)


_BREAKS: Mapping[str, Callable[[ConstraintRule, Columns], pa.BooleanArray | None]] = {
    NOT_NULL.name: _is_null,
    UNIQUE_CONSTRAINT.name: _seen_by_its_index,
    CHECK_CONSTRAINT.name: _is_false,
}
