"""Work that goes on when whoever asked for it hangs up."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from metasrv_base.errors import MetaError

T = TypeVar("T")
Begin: TypeAlias = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""A function like `create_task` of a TaskGroup, which owns the task."""


async def run_shielded(
    begin: Begin, work: Callable[[], Coroutine[Any, Any, T]], lost: MetaError
) -> T:
    """Returns or raises what *work* does. Only the owner of the task can cancel it; then raises
    *lost*. An exception that is no MetaError goes to the owner."""
    answer = _begun(begin, work, lost)
    try:
        return await answer
    finally:
        del answer  # it holds the error, and the error this frame: a cycle, left to gc


def _begun(
    begin: Begin, work: Callable[[], Coroutine[Any, Any, T]], lost: MetaError
) -> "asyncio.Future[T]":
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    unanswered = [answer]  # emptied, so that what has ended does not hold its error

    async def run() -> None:
        try:
            result = await work()
        except MetaError as error:
            if not unanswered[0].done():
                unanswered.pop().set_exception(error)
        else:
            if not unanswered[0].done():
                unanswered.pop().set_result(result)

    def ended(_: "asyncio.Task[None]") -> None:
        if unanswered and not unanswered[0].done():
            unanswered.pop().set_exception(lost)

    begin(run()).add_done_callback(ended)
    return answer
