"""A DDL request: a change that is planned against the catalog, again whenever that has moved."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.records import Lock, ProcedurePhase, Resource
from metasrv.service.nearby import hint
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict, NotFound, Refused
from metasrv_base.ids import is_identifier
from metasrv_base.values.frozen import frozen
from procedures.engine.active_procedure import ActiveProcedure
from procedures.kinds.registry import KINDS
from procedures.machine import Kind, ProcedureState
from procedures.ports import NodeView
from procedures.scheduling.manager import Manager


@frozen
class RequestFacts:
    """The facts by which a request is planned, all of one moment."""

    catalog: Catalog
    nodes: tuple[NodeView, ...]
    now_ms: int
    """Wall clock."""


@frozen
class ProcedureToSubmit:
    """The plan of a valid request: the procedure to submit."""

    kind: Kind[Any]
    state: ProcedureState
    table_id: int | None = None
    """The table its name resolved to; compared again under the locks (docs/protocols.md P1)."""
    sequence: str | None = None
    """The id in `state` is a placeholder: take one from this sequence, and ask `numbered`."""
    numbered: Callable[[int], ProcedureState] | None = None
    sequences: tuple[str, ...] = ()
    """The sequence of each id, in order, where `state` has placeholders for several."""
    renumbered: Callable[[Callable[[str], int]], ProcedureState] | None = None
    """Takes the next id of a sequence as often as `sequences` says."""
    is_long: bool = False
    """Whether `renumbered` takes so long that it is called in a thread."""


@dataclass(frozen=True, slots=True)
class AlreadySatisfied:
    """The plan of a request whose object exists already (`if_not_exists`)."""

    kind: Kind[Any]
    """The kind of procedure that would have made it."""
    existing: CatalogTable | SchemaInfo | CatalogInfo | PlacementInfo | TablespaceInfo
    index: str | None = None
    """The name of the table's index, if the request was for one."""

    @property
    def resource(self) -> Resource:
        existing = self.existing
        if isinstance(existing, CatalogTable):
            return Resource.table(existing.info.table_id, existing.info.full_name)
        if isinstance(existing, CatalogInfo):
            return Resource(type="catalog", id=str(existing.catalog_id), name=existing.name)
        if isinstance(existing, PlacementInfo):
            return Resource(type="placement", id=str(existing.placement_id), name=existing.name)
        name = f"{existing.catalog}.{existing.name}"
        if isinstance(existing, TablespaceInfo):
            return Resource(type="tablespace", id=str(existing.tablespace_id), name=name)
        return Resource(type="schema", id=str(existing.schema_id), name=name)


@dataclass(frozen=True, slots=True)
class AlreadyAbsent:
    """A change of an object that does not exist (`if_exists`): nothing is to be done."""

    kind: Kind[Any]
    """The kind of procedure that would have changed it."""
    resource: Resource
    """The resource, without an id."""


DdlPlan = ProcedureToSubmit | AlreadySatisfied | AlreadyAbsent


@frozen
class DdlRequest:
    context: RequestContext
    locks: Callable[[Catalog], tuple[Lock, ...]]
    """The locks it needs, as far as the catalog tells. Their holders may change the plan."""
    plan: Callable[[RequestFacts], DdlPlan]
    """Pure. Raises what is to be answered: NotFound, Conflict, Refused."""
    joins: str | None = None
    """A kind of procedure that does what this request asks for, when its plan waits for it."""
    is_long: bool = False
    """Whether planning takes so long that it is done in a thread."""


@frozen
class FullSchemaName:
    catalog: str
    schema: str

    def __post_init__(self) -> None:
        must_be_identifiers(self.catalog, self.schema)

    @property
    def full(self) -> str:
        return f"{self.catalog}.{self.schema}"


@frozen
class FullTableName:
    catalog: str
    schema: str
    table: str

    def __post_init__(self) -> None:
        must_be_identifiers(self.catalog, self.schema, self.table)

    @property
    def full(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"


def must_be_identifiers(*names: str) -> None:
    """Raises Refused("invalid-identifier") for the first that could name nothing."""
    for name in names:
        if not is_identifier(name):
            raise Refused("invalid-identifier", name=name)


def table_named(catalog: Catalog, name: FullTableName) -> CatalogTable:
    """Raises NotFound, saying which part does not exist, and what comes close."""
    schema_named(catalog, FullSchemaName(name.catalog, name.schema))
    table = catalog.find(name.catalog, name.schema, name.table)
    if table is None:
        others = catalog.names.get((name.catalog, name.schema), Map[str, int]())
        raise NotFound("table-not-found", name=name.full, **hint(name.table, others))
    return table


def schema_named(catalog: Catalog, name: FullSchemaName) -> SchemaInfo:
    """Raises NotFound, as `table_named`."""
    must_have_catalog(catalog, name.catalog)
    info = catalog.schemas.get((name.catalog, name.schema))
    if info is None:
        others = {schema for tenant, schema in catalog.schemas if tenant == name.catalog}
        close = hint(name.schema, others)
        raise NotFound("not-found", what="schema", name=name.full, **close)
    return info


def must_have_catalog(catalog: Catalog, name: str) -> None:
    if name not in catalog.catalogs:
        close = hint(name, catalog.catalogs)
        raise NotFound("not-found", what="catalog", name=name, **close)


Blockers = tuple[tuple[str, ActiveProcedure], ...]
"""Procedures, by id, oldest first."""


def in_the_way(locks: Iterable[Lock], manager: Manager) -> Blockers:
    """Procedures that hold, or wait for, what *locks* cannot share with them."""
    procedures = dict.fromkeys(procedure for procedure, _ in manager.locks.conflicts(locks))
    entries = ((procedure, manager.entry(procedure)) for procedure in procedures)
    return tuple((procedure, entry) for procedure, entry in entries if entry is not None)


def refuse_if_being_dropped(blockers: Blockers) -> None:
    """Raises Conflict for a schema or catalog that is being dropped: a change behind the drop could
    only fail."""
    for procedure, entry in blockers:
        record = entry.held.record
        kind = KINDS.get(record.kind)
        is_drop = kind is not None and kind.removes_contents
        if is_drop and record.phase is ProcedurePhase.FORWARD:
            raise Conflict("being-dropped", name=record.resource.name, procedure_id=procedure)


def refuse_if_poisoned(blockers: Blockers) -> None:
    """Raises Conflict for a poisoned resource: only a person can end the wait."""
    for procedure, entry in blockers:
        record = entry.held.record
        if record.poisoned:
            raise Conflict("table-poisoned", resource=record.resource.name, procedure_id=procedure)


def locked(blockers: Blockers) -> Conflict:
    """409 `object-locked`, with who holds what. There is at least one."""
    holders = [
        {"procedure_id": procedure, "kind": entry.held.record.kind} for procedure, entry in blockers
    ]
    first, entry = blockers[0]
    return Conflict(
        "object-locked",
        resource=entry.held.record.resource.name,
        holder=first,
        procedure_id=first,
        blocked_by=holders,
    )
