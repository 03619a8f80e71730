"""Requests about what tables are placed by, the same for placements and for tablespaces. Pure."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from immutables import Map

from keys.catalog.catalog import Catalog
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.records import Lock
from metasrv.service.requests.absent import unless_absent
from metasrv.service.requests.ddl_request import (
    AlreadySatisfied,
    DdlPlan,
    DdlRequest,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Conflict
from procedures.commands.placing_objects import must_not_be_default
from procedures.kinds.namespaces.named_objects import CreatesNamed
from procedures.machine import Kind
from procedures.steps.existing import alike, must_be_free
from procedures.steps.users import refuse_if_used

Info = TypeVar("Info", PlacementInfo, TablespaceInfo)
N = TypeVar("N")
"""The full name of an object."""
PLACEHOLDER_ID = 0


@dataclass(frozen=True, slots=True)
class PlacingRequests(Generic[N]):
    """One type of such objects."""

    word: str
    text: Callable[[N], str]
    """Returns a full name as text."""
    locks: Callable[[tuple[N, ...]], tuple[Lock, ...]]
    exists: Callable[[Catalog, N], bool]

    def create(
        self, context: RequestContext, name: N, plan: Callable[[RequestFacts], DdlPlan]
    ) -> DdlRequest:
        context.require_no_version()
        return self._request(context, (name,), plan)

    def change(
        self,
        context: RequestContext,
        kind: Kind[Any],
        names: tuple[N, ...],
        plan: Callable[[RequestFacts], DdlPlan],
        *,
        if_exists: bool | None = None,
    ) -> DdlRequest:
        """Builds the request to change an object. *names* are its name, and the one that it is to
        have; *if_exists* None: as the context says. *plan* compares the version that the context
        requires."""
        if if_exists is not None:
            context = replace(context, if_exists=if_exists)
        request = self._request(context, names, plan)
        name = names[0]

        def exists(catalog: Catalog) -> bool:
            return self.exists(catalog, name)

        return unless_absent(request, kind, self.word, self.text(name), exists)

    def must_not_be_default(self, name: N) -> None:
        must_not_be_default(self.word, self.text(name))

    def must_be_unused(self, name: N, table_ids: Collection[int], catalog: Catalog) -> None:
        refuse_if_used(f"{self.word} {self.text(name)}", table_ids, catalog)

    def _request(
        self, context: RequestContext, names: tuple[N, ...], plan: Callable[[RequestFacts], DdlPlan]
    ) -> DdlRequest:
        locks = self.locks(tuple(dict.fromkeys(names)))
        return DdlRequest(context, lambda catalog: locks, plan)

    def must_be_free(self, name: N, existing: object | None) -> None:
        must_be_free(self.word, self.text(name), existing)


@dataclass(frozen=True, slots=True)
class Siblings(Generic[Info]):
    """Objects among which another is to be created."""

    what: str
    """The plural that names them in errors."""
    by_name: Map[str, Info]
    limit: int

    def planned(
        self, kind: Kind[Any], sequence: str, numbered: Callable[[int], CreatesNamed[Info]]
    ) -> ProcedureToSubmit | AlreadySatisfied:
        """Plans a create. *numbered* makes the state of *kind* with an id of *sequence*. Raises
        Conflict."""
        draft = numbered(PLACEHOLDER_ID)
        existing = self.by_name.get(draft.info.name)
        existing = alike(draft.info, existing, if_not_exists=draft.if_not_exists)
        if existing is not None:
            return AlreadySatisfied(kind, existing)
        count = len(self.by_name)
        if count >= self.limit:
            raise Conflict("too-many-objects", what=self.what, count=count, limit=self.limit)
        return ProcedureToSubmit(kind, draft, sequence=sequence, numbered=numbered)
