"""Work that goes on when whoever asked for it hangs up."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from base.errors import MetaError

T = TypeVar("T")
Begin: TypeAlias = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""As `create_task` of a TaskGroup, which owns what it begins."""


async def outlive(begin: Begin, work: Callable[[], Coroutine[Any, Any, T]], lost: MetaError) -> T:
    """What *work* returns or raises. Only the owner of the task can cancel it: then raises *lost*.
    Any other than a MetaError is the owner's to see."""
    answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        try:
            result = await work()
        except MetaError as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            if not answer.done():
                answer.set_result(result)

    def ended(_: "asyncio.Task[None]") -> None:
        if not answer.done():
            answer.set_exception(lost)

    begin(run()).add_done_callback(ended)
    return await answer
