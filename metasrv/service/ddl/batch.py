"""Plans a batch: each command by the catalog that those before it leave. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TypeAlias

from keys.catalog.catalog import Catalog
from keys.catalog.known import CatalogByKey
from keys.commit.change import draft_update
from keys.model.log import Entry
from keys.model.records import Lock
from metasrv.service.ddl.batch_members import (
    NOT_IN_BATCH,
    MemberRequest,
    ddl_request_of,
    not_in_batch,
    op_of,
)
from metasrv.service.requests.ddl_request import (
    AlreadyAbsent,
    AlreadySatisfied,
    DdlPlan,
    DdlRequest,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.api.batches import BatchRequest
from metasrv_base.wire.problem.problems import ERRORS_MAX, FieldError, refuse
from procedures.commands.in_order import placed, planned, refuse_too_many
from procedures.kinds.batch.batch import BATCH, CommandBatch
from procedures.kinds.batch.members import Change, Member, Miss, command_of
from procedures.kinds.tables.create_table import CreateTable
from procedures.locking.locks import distinct
from procedures.ports import NodeView

PLACEHOLDER_ID = 2**31 - 1  # the ids of what is made count down from it, until they are reserved
PLANNED_AT_ONCE = 32  # commands that are planned on the event loop: some 10 ms
SWEEPING = frozenset(
    ("drop_catalog", "drop_schema", "alter_placement", "drop_placement", "drop_tablespace")
)
"""Commands that look at all that stands in an object or uses it, which may be thousands of tables:
a cascade over 1,000 takes 120 ms."""
BY = "00000000-0000-7000-8000-000000000000"  # of what is dropped, until the batch has an id

INSIDE = {
    "create_table": "/table",
    "create_schema": "/schema",
    "create_tablespace": "/tablespace",
}
"""Command -> the place of the object that it makes."""

NextId: TypeAlias = Callable[[str], int]
"""Takes the next id of a sequence."""


def batch(context: RequestContext, request: BatchRequest) -> DdlRequest:
    """Raises Refused with every fault of every command."""
    context.require_no_version()
    _refuse_states(request)
    members = _member_requests(context, request)

    def locks(catalog: Catalog) -> tuple[Lock, ...]:
        return distinct(*(lock for each in members for lock in each.request.locks(catalog)))

    plan = partial(plan_batch, context, members)
    return DdlRequest(context, locks, plan, is_long=_is_long(members))


def _is_long(members: Sequence[MemberRequest]) -> bool:
    return len(members) > PLANNED_AT_ONCE or any(each.op in SWEEPING for each in members)


def _refuse_states(request: BatchRequest) -> None:
    """Raises Refused("not-in-batch"), which names each command that a batch does not take."""
    commands = enumerate(request.commands)
    errors = [error for number, command in commands for error in not_in_batch(number, command)]
    if errors:
        raise Refused(NOT_IN_BATCH, errors=tuple(errors[:ERRORS_MAX]), count=len(errors))


def _member_requests(context: RequestContext, request: BatchRequest) -> tuple[MemberRequest, ...]:
    members: list[MemberRequest] = []
    errors: list[FieldError] = []
    for number, command in enumerate(request.commands):
        op = op_of(command)
        try:
            own = replace(context, body={}, body_bytes=len(command.model_dump_json()))
            members.append(MemberRequest(op, ddl_request_of(own, command)))
        except Refused as error:
            errors += _at(number, op, error)
    refuse(errors)
    return tuple(members)


def _at(number: int, op: str, error: Refused) -> Iterable[FieldError]:
    """The faults of one command, with their places in the batch."""
    here = f"/commands/{number}/{op}"
    inside = INSIDE.get(op, "")
    inner = error.facts.get("errors")
    if not isinstance(inner, tuple):
        return (FieldError(pointer=here, code=error.code, detail=str(error)),)
    return [
        fault.model_copy(update={"pointer": f"{here}{inside}{fault.pointer}"}) for fault in inner
    ]


def plan_batch(
    context: RequestContext, members: Sequence[MemberRequest], facts: RequestFacts
) -> ProcedureToSubmit:
    placeholders = count(PLACEHOLDER_ID, -1)
    drafted = _drafted(members, facts, lambda _: next(placeholders))
    _must_fit(drafted)

    def numbered(ids: NextId) -> CommandBatch:
        return CommandBatch(members=_drafted(members, facts, ids).members)

    draft = CommandBatch(members=drafted.members)
    return ProcedureToSubmit(
        BATCH,
        draft,
        sequences=drafted.sequences,
        renumbered=numbered,
        is_long=_is_long(members),
    )


@dataclass(frozen=True, slots=True)
class DraftedBatch:
    """A batch whose commands are all valid, as the catalog stands."""

    members: tuple[Member, ...]
    entries: tuple[Entry, ...]
    sequences: tuple[str, ...]
    """The sequence of each id that it took, in order."""


def _drafted(
    members: Sequence[MemberRequest], facts: RequestFacts, next_id: NextId
) -> DraftedBatch:
    """Plans each command. Raises the refusal of the first that is refused, with its number."""
    resolved: list[Member] = []
    entries: list[Entry] = []
    sequences: list[str] = []
    for number, each in enumerate(members):
        try:
            plan = each.request.plan(facts)
            if isinstance(plan, ProcedureToSubmit) and plan.sequence is not None:
                assert plan.numbered is not None
                sequences.append(plan.sequence)
                plan = replace(plan, state=plan.numbered(next_id(plan.sequence)))
            elif isinstance(plan, ProcedureToSubmit) and plan.renumbered is not None:
                sequences.extend(plan.sequences)
                plan = replace(plan, state=plan.renumbered(next_id))
            member = _member(plan)
            (made,) = at_once(planned([command_of(member, BY)], CatalogByKey(facts.catalog)))
        except MetaError as error:
            raise placed(error, number) from error
        resolved.append(member)
        entries += made
        if number + 1 < len(members):  # no command is planned by what the last one leaves
            facts = _after(facts, made, plan)
    return DraftedBatch(tuple(resolved), tuple(entries), tuple(sequences))


def _member(plan: DdlPlan) -> Member:
    match plan:
        case ProcedureToSubmit():
            return Change.of(plan.kind.name, plan.state)
        case AlreadySatisfied():
            return Miss(kind=plan.kind.name, name=plan.resource.name, id=int(plan.resource.id))
        case AlreadyAbsent():
            return Miss(kind=plan.kind.name, name=plan.resource.name, id=None)


def _after(facts: RequestFacts, made: tuple[Entry, ...], plan: DdlPlan) -> RequestFacts:
    """The facts by which the next command is planned."""
    if not made:
        return facts
    catalog = facts.catalog
    update = draft_update(catalog.version + 1, facts.now_ms, made)
    nodes = facts.nodes
    if isinstance(plan, ProcedureToSubmit) and isinstance(plan.state, CreateTable):
        nodes = _loaded(nodes, plan.state)
    return replace(facts, catalog=catalog.apply(update, catalog.revision), nodes=nodes)


def _loaded(nodes: tuple[NodeView, ...], table: CreateTable) -> tuple[NodeView, ...]:
    """The nodes with the regions of *table*, so that the next table goes elsewhere."""
    led = table.route.numbers_by_node()
    return tuple(
        replace(node, regions=node.regions + len(led[node.node_id]))
        if node.node_id in led
        else node
        for node in nodes
    )


def _must_fit(drafted: DraftedBatch) -> None:
    """Raises Refused("ddl-too-large") with the numbers, before any node is asked."""
    refuse_too_many(len(drafted.entries))
