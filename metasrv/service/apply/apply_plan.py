"""The plan of an apply: operations, with a digest of them and of the objects that they change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keys.catalog.catalog import Catalog
from metasrv.service.declared.current import declared_state, scope_of
from metasrv.service.declared.difference import difference
from metasrv.service.declared.operations import Operation
from metasrv.service.declared.steps import PlanStep, digest_of, planned, steps_of
from metasrv_base.errors import Conflict, Refused
from metasrv_base.wire.language.apply import PlannedOperation
from metasrv_base.wire.language.declared import DesiredState
from metasrv_base.wire.problem.problems import ERRORS_MAX, FACTS_MAX, FieldError

NOT_IN_PLACE = "not-in-place"
DESTRUCTIVE = "destructive-plan"


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """The operations from one version of the catalog to a desired state."""

    operations: tuple[Operation, ...]
    shown: tuple[PlannedOperation, ...]
    states: tuple[Any, ...]
    """The state of the object that each operation changes (`state_of`)."""
    catalog_version: int

    @property
    def digest(self) -> str:
        return digest_of(self.shown, self.states)

    @property
    def rest(self) -> str:
        """The digest of the operations alone: of a plan that is the rest of another."""
        return self.rest_from(0)

    def rest_from(self, number: int) -> str:
        return digest_of(self.shown[number:])

    @property
    def steps(self) -> tuple[PlanStep, ...]:
        return tuple(steps_of(self.operations))


def plan_of(catalog: Catalog, desired: DesiredState, *, prune: bool) -> ApplyPlan:
    """Raises Refused `not-in-place` with every difference that no operation removes."""
    names = [each.name for each in desired.catalogs]
    current = declared_state(catalog, names, scope_of(desired, prune=prune))
    different = difference(current, desired, prune=prune)
    if different.refusals:
        errors = tuple(different.refusals[:ERRORS_MAX])
        raise Refused(NOT_IN_PLACE, errors=errors, count=len(different.refusals))
    operations = tuple(different.operations)
    states = tuple(state_of(catalog, each) for each in operations)
    return ApplyPlan(operations, planned(operations), states, catalog.version)


def state_of(catalog: Catalog, operation: Operation) -> Any:
    """Id and version of the object that is changed, under the name that it has before; None: there
    is none."""
    command = operation.command
    (op,) = type(command).model_fields
    body = getattr(command, op)
    match op.partition("_")[2]:
        case "table" if op == "create_table":
            return _table(catalog, body.catalog, body.schema_name, body.table.name)
        case "table" | "index":
            return _table(catalog, body.catalog, body.schema_name, body.table)
        case "schema":
            schema = catalog.schemas.get((body.catalog, body.schema_spec.name))
            return None if schema is None else schema.schema_id
        case "catalog":
            info = catalog.catalogs.get(body.name if op == "create_catalog" else body.catalog)
            return None if info is None else info.model_dump(mode="json")
        case "placement":
            name = body.name if op == "create_placement" else body.placement
            return _versioned(catalog.placing.placements, name, "placement_id")
        case "tablespace":
            spaces = catalog.placing.tablespaces_of(body.catalog)
            space = body.tablespace.name if op == "create_tablespace" else body.tablespace
            return _versioned(spaces, space, "tablespace_id")
    raise AssertionError(op)


def _table(catalog: Catalog, catalog_name: str, schema: str, name: str) -> Any:
    table = catalog.find(catalog_name, schema, name)
    return None if table is None else (table.info.table_id, table.info.version)


def _versioned(objects: Mapping[str, Any], name: str, id: str) -> Any:
    info = objects.get(name)
    return None if info is None else (getattr(info, id), info.version)


def must_be_allowed(plan: ApplyPlan) -> None:
    """Raises Refused `destructive-plan` with the operations that lose something."""
    errors = [
        FieldError(
            pointer="",
            code=DESTRUCTIVE,
            detail=f"{each.target.what} {each.target.name}: {each.text}: {each.destructive}",
        )
        for each in plan.operations
        if each.destructive is not None
    ]
    if errors:
        raise Refused(DESTRUCTIVE, errors=tuple(errors[:ERRORS_MAX]), count=len(errors))


def plan_changed(plan: ApplyPlan) -> Conflict:
    """409 `plan-changed`, with the new plan."""
    texts = [f"{each.target.what} {each.target.name}: {each.text}" for each in plan.operations]
    return Conflict(
        "plan-changed",
        plan_hash=plan.digest,
        operations=texts[:FACTS_MAX],
        count=len(texts),
    )
