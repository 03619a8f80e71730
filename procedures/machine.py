"""The definition of a procedure: a table of steps, the edges between them, the point of no return.

No I/O here. Names of kinds and steps are stored in records: add new ones, never rename.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from keys.catalog.catalog import Catalog
from keys.commit.txn import NOTHING, Txn
from keys.model.log import StagedRef
from keys.model.records import Lock, ProcedureRecord, Resource
from keys.value import StoredPart
from metasrv_base.elements.graph import Graph
from metasrv_base.elements.proofs import is_proved
from metasrv_base.elements.proved import PROVED
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.model import WireModel
from procedures.context import Context
from procedures.elements.reorg import IndexReorg
from procedures.tenant_claim import TenantClaim, no_claims


class ProcedureState(BaseModel):
    """The state that a procedure must keep across a crash. Stored in its record, under `format`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: ClassVar[int] = 1
    """Format of the stored form of this model; a record with a higher one is parked."""


S = TypeVar("S", bound=ProcedureState)


@dataclass(frozen=True, slots=True)
class Goto(Generic[S]):
    """Continue at *step*. `txn` and the new record are committed together, or neither is."""

    step: str
    state: S
    txn: Txn = NOTHING
    keeps: tuple[Lock, ...] | None = None
    """Locks that the procedure holds from then on, of those that it has; None: all of them."""


@frozen
class Done(Generic[S]):
    """The procedure has succeeded once `txn` and its history are committed together."""

    state: S
    result: Mapping[str, Any]
    txn: Txn = NOTHING


@dataclass(frozen=True, slots=True)
class Back:
    """A part of the way back: `txn` and the record are committed together. Then the same step is
    undone again, until there is nothing left of it."""

    txn: Txn


Outcome: TypeAlias = Goto[S] | Done[S]
Act: TypeAlias = Callable[[S, Context], Awaitable[Outcome[S]]]
Undo: TypeAlias = Callable[[S, Context], Awaitable[Back | None]]
"""A call that takes a step back. It returns None if nothing is left of the step."""


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """One row of a kind's table of steps."""

    act: Act[S]
    """Reads, acts idempotently, returns its writes. Runs once or more; commits once."""
    to: frozenset[str] = frozenset()
    """Steps it may go to, itself included if it may repeat; empty: only to the end."""
    undo: Undo[S] | None = None
    """Right from "not begun" to "done": undo starts with the step that was in flight (P1)."""
    ends: bool = False
    """Whether it may end the procedure although it has edges to other steps."""
    waits: bool = False
    """Whether it mostly waits, for children, a lease, a node or Spark. Such a step takes no place
    of the admission limit."""
    paced: bool = False
    """Whether it moves data repeatedly: a throttle makes it rest between runs."""


@dataclass(frozen=True, slots=True)
class IndexOf(Generic[S]):
    """The index that a kind builds."""

    name: Callable[[Mapping[str, Any]], str]
    """Returns the name of the index from a stored state."""
    reorg: Callable[[S], IndexReorg | None]
    """Progress of filling the index; None: it has not begun."""


@dataclass(frozen=True, slots=True)
class Staging(Generic[S]):
    """The items of a state that are written as parts where its record cannot hold them."""

    items: Callable[[S], Sequence[StoredPart]]
    in_parts: Callable[[S, StagedRef, Catalog], S]
    """Returns the state without them, once they are in the parts."""
    parts: Callable[[S], StagedRef | None]
    """Returns the parts that hold the items of the state; None: the state itself holds them."""


def _no_pin(record: ProcedureRecord) -> int | None:
    return None


def _no_children(stored: Mapping[str, Any]) -> tuple[str, ...]:
    return ()


def _no_change(stored: Mapping[str, Any]) -> None:
    return None


class AdmissionLane(StrEnum):
    """The quota from which a kind is admitted. Repair never waits behind DDL and is never
    answered 429."""

    DDL = "ddl"
    REPAIR = "repair"


@dataclass(frozen=True, slots=True)
class Kind(Generic[S]):
    """A procedure as data."""

    name: str
    state: type[S]
    steps: Mapping[str, Step[S]]
    """Steps in order; the procedure begins with the first."""
    no_return: str
    """The step whose commit cannot be undone: until then cancel and deadline undo, then never."""
    locks: Callable[[S], tuple[Lock, ...]]
    resource: Callable[[S], Resource]
    success: int
    """HTTP status of its end for a client that waited: 200, 201 or 204."""
    purpose: str = ""
    """First sentence of its page, without the name, if its module describes several kinds; else the
    docstring of the module begins with that sentence."""
    deadline_ms: int = 60_000
    """Deadline from submission; a procedure that has not passed `no_return` by then is undone."""
    lane: AdmissionLane = AdmissionLane.DDL
    graphs: tuple[Graph, ...] = ()
    """State graphs of the elements that it publishes. Every such graph is proved."""
    report: type[WireModel] | None = None
    """Model of the result, where the result is the answer to a client that waited. None: the answer
    is the catalog, schema or table, as the procedure left it."""
    index: "IndexOf[S] | None" = None
    """The index that the kind builds; the answer then shows it instead of its table."""
    removes_contents: bool = False
    """Whether a request for something below its resource is refused (`being-dropped`) while it goes
    forward, instead of waiting for its locks."""
    shown_children: Callable[[Mapping[str, Any]], tuple[str, ...]] = _no_children
    """Ids of the children that a stored state names, which are shown also once they are over."""
    change: Callable[[Mapping[str, Any]], str | None] = _no_change
    """Returns the change of the resource in a few words, from a stored state; None: the kind says
    all."""

    pins: Callable[[ProcedureRecord], int | None] = _no_pin
    """The version of the catalog whose log a procedure needs although it is parked, paused or
    poisoned; None: nothing."""
    staging: "Staging[S] | None" = None
    """The items that are stored in parts; None if its record always holds its state."""
    claims: Callable[[S, Catalog], tuple[TenantClaim, ...]] = no_claims
    """Its claims on the limits of tenants, from submit to its end: one for each."""

    def __post_init__(self) -> None:
        assert self.no_return in self.steps
        assert all(step.to <= self.steps.keys() for step in self.steps.values())
        unproved = [graph.name for graph in self.graphs if not is_proved(graph, PROVED)]
        assert not unproved, f"{self.name}: not proved, run `make generate`: {unproved}"

    @property
    def first(self) -> str:
        return next(iter(self.steps))

    @property
    def is_paced(self) -> bool:
        return any(step.paced for step in self.steps.values())

    def may_follow(self, step: str, after: str) -> bool:
        return step in self.steps[after].to

    def may_end(self, step: str) -> bool:
        return self.steps[step].ends or not self.steps[step].to

    def has_passed(self, trail: tuple[str, ...]) -> bool:
        """Whether a procedure that committed these steps can no longer be undone."""
        return self.no_return in trail

    def mermaid(self) -> str:
        """The diagram in docs/procedures/: generated, so it cannot drift."""
        lines = ["stateDiagram-v2", f"  [*] --> {self.first}"]
        for name, step in self.steps.items():
            lines += [f"  {name} --> {target}" for target in sorted(step.to)]
            if self.may_end(name):
                lines.append(f"  {name} --> [*]")
        lines.append(f"  note right of {self.no_return}: its commit is the point of no return")
        return "\n".join(lines)
