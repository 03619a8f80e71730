"""Work that goes on when whoever asked for it hangs up."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from base.errors import MetaError

T = TypeVar("T")


async def outlive(
    tasks: asyncio.TaskGroup, work: Callable[[], Coroutine[Any, Any, T]], lost: MetaError
) -> T:
    """What *work* returns or raises; it is one of *tasks*, and is cancelled only with them: then
    raises *lost*. Any other than a MetaError ends them all."""
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

    tasks.create_task(run()).add_done_callback(ended)
    return await answer
