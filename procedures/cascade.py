"""A drop with all that is inside: children in bounded batches, until a look finds nothing left.

The parent hides what it drops in its first transaction, so no reader sees half of it, and holds the
lock that everybody needs who wants anything inside. So its children take no lock of the schema side
of their own: they would queue behind strangers who wait for their parent.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import Field

from keys.key import Key, Range
from keys.kv import Get, KeyValue
from procedures.context import Context
from procedures.machine import ProcedureState

BATCH = 32  # children under way at once: each keeps a record until it is over


class Cascade(ProcedureState):
    """Of a kind that drops what is inside first."""

    cascade: bool = False
    """False: refused while it is not empty."""
    children: dict[str, str] = Field(default_factory=dict)
    """Key of what is dropped -> id of the child that does it, chosen before it is submitted."""


S = TypeVar("S", bound=Cascade)


async def first_inside(at: Context, inside: Range, limit: int) -> tuple[KeyValue, ...]:
    """At most *limit* keys, in order."""
    get = Get(inside.start, inside.end, limit=limit)
    page = await at.ports.kv.range(get, deadline_ms=at.ports.deadline_ms)
    return page.items


def with_children(state: S, keys: Iterable[Key[Any]], at: Context) -> S:
    """A child for each of *keys*. Their ids are in the record before any is submitted, so that a
    resumed parent finds the same ones."""
    children = {str(key): str(at.ports.ids.procedure_id()) for key in keys}
    return state.model_copy(update={"children": children})


async def submit_each(
    state: Cascade, kind: str, states: Mapping[str, ProcedureState], at: Context
) -> None:
    """*states*: of each child, by the key it drops."""
    for key, child in states.items():
        await at.children.submit(state.children[key], kind, child.model_dump(mode="json"))


async def gathered(state: S, at: Context) -> S:
    """Once all are over. One that failed has left its key, which the next look finds."""
    with at.waiting_for("child", ", ".join(state.children.values())):
        await at.children.wait(tuple(state.children.values()))
    return state.model_copy(update={"children": {}})
