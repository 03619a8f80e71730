"""A batch, judged and planned: each command by the catalog that those before it leave. Pure."""

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
    MemberWish,
    not_in_batch,
    op_of,
    wish_of,
)
from metasrv.service.requests.ddl_request import (
    AlreadyAbsent,
    AlreadySatisfied,
    DdlRequest,
    Judged,
    ProcedureToSubmit,
    RequestFacts,
)
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.api.batches import BatchRequest
from metasrv_base.wire.problem.problems import ERRORS_MAX, FieldError, refuse
from procedures.commands.in_order import placed
from procedures.kinds.batch.batch import BATCH, CommandBatch
from procedures.kinds.batch.large import OBJECTS_MAX
from procedures.kinds.batch.members import Change, Member, Miss, command_of
from procedures.kinds.tables.create_table import CreateTable
from procedures.locking.locks import distinct
from procedures.ports import NodeView

PLACEHOLDER_ID = 2**31 - 1  # the ids of what is made count down from it, until they are reserved
JUDGED_AT_ONCE = 32  # commands that are judged on the event loop: some 10 ms
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
    members = _wishes(context, request)

    def wants(catalog: Catalog) -> tuple[Lock, ...]:
        return distinct(*(lock for each in members for lock in each.wish.wants(catalog)))

    is_long = len(members) > JUDGED_AT_ONCE
    return DdlRequest(context, wants, partial(plan_batch, context, members), is_long=is_long)


def _refuse_states(request: BatchRequest) -> None:
    """Raises Refused("not-in-batch"), which names each command that a batch does not take."""
    commands = enumerate(request.commands)
    errors = [error for number, command in commands for error in not_in_batch(number, command)]
    if errors:
        raise Refused(NOT_IN_BATCH, errors=tuple(errors[:ERRORS_MAX]), count=len(errors))


def _wishes(context: RequestContext, request: BatchRequest) -> tuple[MemberWish, ...]:
    wishes: list[MemberWish] = []
    errors: list[FieldError] = []
    for number, command in enumerate(request.commands):
        op = op_of(command)
        try:
            own = replace(context, body={}, body_bytes=len(command.model_dump_json()))
            wishes.append(MemberWish(op, wish_of(own, command)))
        except Refused as error:
            errors += _at(number, op, error)
    refuse(errors)
    return tuple(wishes)


def _at(number: int, op: str, error: Refused) -> Iterable[FieldError]:
    """The faults of one command, with their places in the batch."""
    here = f"/commands/{number}/{op}"
    inside = INSIDE.get(op, "")
    given = error.facts.get("errors")
    if not isinstance(given, tuple):
        return (FieldError(pointer=here, code=error.code, detail=str(error)),)
    return [
        fault.model_copy(update={"pointer": f"{here}{inside}{fault.pointer}"}) for fault in given
    ]


def plan_batch(
    context: RequestContext, members: Sequence[MemberWish], facts: RequestFacts
) -> ProcedureToSubmit:
    placeholders = count(PLACEHOLDER_ID, -1)
    drafted = _judged(members, facts, lambda _: next(placeholders))
    _must_fit(drafted)

    def numbered(ids: NextId) -> CommandBatch:
        return CommandBatch(members=_judged(members, facts, ids).members)

    draft = CommandBatch(members=drafted.members)
    return ProcedureToSubmit(BATCH, draft, sequences=drafted.sequences, renumbered=numbered)


@dataclass(frozen=True, slots=True)
class DraftedBatch:
    """A batch that is right, as things are."""

    members: tuple[Member, ...]
    entries: tuple[Entry, ...]
    sequences: tuple[str, ...]
    """The sequence of each id that it took, in order."""


def _judged(members: Sequence[MemberWish], facts: RequestFacts, next_id: NextId) -> DraftedBatch:
    """Raises what the first command that cannot be is refused with, and its number in the list."""
    resolved: list[Member] = []
    entries: list[Entry] = []
    sequences: list[str] = []
    for number, each in enumerate(members):
        try:
            judged = each.wish.judge(facts)
            if isinstance(judged, ProcedureToSubmit) and judged.sequence is not None:
                assert judged.numbered is not None
                sequences.append(judged.sequence)
                judged = replace(judged, state=judged.numbered(next_id(judged.sequence)))
            elif isinstance(judged, ProcedureToSubmit) and judged.renumbered is not None:
                sequences.extend(judged.sequences)
                judged = replace(judged, state=judged.renumbered(next_id))
            member = _member(judged)
            made = command_of(member, BY).plan(CatalogByKey(facts.catalog))
        except MetaError as error:
            raise placed(error, number) from error
        resolved.append(member)
        entries += made
        facts = _after(facts, made, judged)
    return DraftedBatch(tuple(resolved), tuple(entries), tuple(sequences))


def _member(judged: Judged) -> Member:
    match judged:
        case ProcedureToSubmit():
            return Change.of(judged.kind.name, judged.state)
        case AlreadySatisfied():
            return Miss(
                kind=judged.kind.name, name=judged.resource.name, id=int(judged.resource.id)
            )
        case AlreadyAbsent():
            return Miss(kind=judged.kind.name, name=judged.resource.name, id=None)


def _after(facts: RequestFacts, made: tuple[Entry, ...], judged: Judged) -> RequestFacts:
    """The facts by which the next command is judged."""
    if not made:
        return facts
    catalog = facts.catalog
    update = draft_update(catalog.version + 1, facts.now_ms, made)
    nodes = facts.nodes
    if isinstance(judged, ProcedureToSubmit) and isinstance(judged.state, CreateTable):
        nodes = _loaded(nodes, judged.state)
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
    if len(drafted.entries) > OBJECTS_MAX:
        needs = f"a version that changes {len(drafted.entries)} objects"
        raise Refused("ddl-too-large", needs=needs, limit=OBJECTS_MAX)
