"""Children for all keys of a range: a parent's record holds a cursor and counts, never their ids.

A round goes over the range once, a page of keys at a time, and begins one child for each; then it
waits for the last of them. What is left after it is for another round, after a pause. The id of a
child follows from the parent, the round and what it is about, so a resumed parent finds the
children it has begun; each names its parent in its own record.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, ClassVar, TypeVar

from pydantic import model_validator

from keys.key import Range
from keys.store.kv import Get, KeyValue
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.ids import uuid7, wall_ms_of
from procedures.context import Context
from procedures.machine import Goto, ProcedureState

PAGE = 128  # children submitted by one step
SUBMITS_AT_ONCE_MAX = 64
IDS_PER_MS = 64  # neighbours share a millisecond of their ids: lists of procedures read by it
IDS_AHEAD_MS = 1 << 16
AGAIN = Backoff(
    first_ms=1_000, max_ms=60_000
)  # a child that fails at once is not begun anew at once


class Paged(ProcedureState):
    """State of a parent whose children are found in a range of keys."""

    format: ClassVar[int] = 2

    rounds: int = 0
    after: str = ""
    """Keys up to this one have their children in this round; empty: none has."""
    upto: str = ""
    """The last key of the page whose children are submitted next; empty: no page was read yet."""
    begun: int = 0
    """Children, over all rounds."""
    begun_before: int = 0
    """Number of children begun before this round."""
    named: bool = False
    """Taken over from a server of format 1 that was beginning children whose ids are in its record:
    those that it has begun are waited for first."""

    @model_validator(mode="before")
    @classmethod
    def _of_format_1(cls, data: Any) -> Any:
        """`children` held the key of what each child was about, and its id."""
        if isinstance(data, Mapping) and "children" in data:
            rest = {name: value for name, value in data.items() if name != "children"}
            return {**rest, "named": bool(data["children"])}
        return data


P = TypeVar("P", bound=Paged)


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """The keys for which one parent submits children, and the way in which it submits them."""

    inside: Range
    """Range of keys, each of which gets a child."""
    begin: Callable[[KeyValue], Awaitable[None]]
    """Submits the child for a key, if it needs one."""
    is_spared: Callable[[KeyValue], Awaitable[bool]]
    """Whether a key gets no child in this round."""
    width: int
    """Children under way at once."""


async def nothing_spared(key: KeyValue) -> bool:
    """Returns False; for a parent that ends only when nothing is left."""
    return False


def child_id(parent: str, rounds: int, number: int) -> str:
    """The id of the child about *number*, a table's id or a schema's, in one round of its parent.

    The id is a UUIDv7. Its time is the parent's plus a part of a minute that rises with *number*.
    """
    ahead_ms = number // IDS_PER_MS % IDS_AHEAD_MS
    noise = sha256(f"{parent} {rounds} {number}".encode()).digest()[:10]
    return uuid7(wall_ms_of(parent) + ahead_ms, noise)


async def first_inside(context: Context, inside: Range, limit: int) -> tuple[KeyValue, ...]:
    """Returns at most *limit* keys, in order."""
    get = Get(inside.start, inside.end, limit=limit)
    page = await context.ports.kv.range(get, deadline_ms=context.ports.deadline_ms)
    return page.items


async def next_round(state: P, context: Context) -> Goto[P]:
    """The first begins at once; each later one after a longer pause."""
    if state.rounds:
        await rest_before_again(context, state.rounds)
    update = {"rounds": state.rounds + 1, "after": "", "upto": "", "begun_before": state.begun}
    return Goto("submit", state.model_copy(update={**update, "named": False}))


async def rest_before_again(context: Context, failed: int) -> None:
    """The pause after *failed* tries with children that did not do what they were begun for."""
    pause_ms = AGAIN.delay_ms(failed, context.ports.rng.random())
    with context.waiting_for("child", f"the next try, after {failed}", pause_ms):
        await context.live.rest(pause_ms)


async def submit_page(state: P, context: Context, family: ChildPlan) -> Goto[P]:
    """Begins the children of the page that the record names; then reads the next page, once no
    more of them are under way than leave room for it. So the record names a page before the first
    child of it is submitted, and counts it once."""
    if state.named:
        begun = state.begun + len(await context.children.under_way())
        return Goto("gather", state.model_copy(update={"named": False, "begun": begun}))
    page, inside = max(1, min(PAGE, family.width // 2)), family.inside
    if state.upto:
        named = Range(_behind(state.after, inside), _end(state.upto))
        items = await first_inside(context, named, page)
        await fan_out([partial(family.begin, item) for item in items], at_once=SUBMITS_AT_ONCE_MAX)
        await at_most(context, family.width - page)
    following = await first_inside(context, Range(_behind(state.upto, inside), inside.end), page)
    if not following:
        return Goto("gather", state.model_copy(update={"after": "", "upto": ""}))
    spared = [await family.is_spared(item) for item in following]
    update = {
        "after": state.upto,
        "upto": following[-1].key.decode(),
        "begun": state.begun + spared.count(False),
    }
    return Goto("submit", state.model_copy(update=update))


async def at_most(context: Context, left: int) -> None:
    """Waits, visibly, until no more than *left* children are under way."""
    living = await context.children.under_way()
    if len(living) <= left:
        return
    more = f" and {len(living) - 1} more" if len(living) > 1 else ""
    with context.waiting_for("child", f"{living[0]}{more}"):
        await context.children.at_most(left)


def _behind(key: str, inside: Range) -> bytes:
    return _end(key) if key else inside.start


def _end(key: str) -> bytes:
    return key.encode() + b"\0"
