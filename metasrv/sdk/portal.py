"""A private event loop in a thread of its own, through which plain code calls async code."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Calls from any thread but its own. `close` ends the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="metasrv-sdk", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns or raises the result of a coroutine. Ctrl-C cancels it."""
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # nothing, once it is done

    def each(self, generator: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yields the items as they come; closes the source when the caller stops, or the portal
        closes. The first is read at once: a call that is wrong fails where it stands."""
        first = self.call(_next(generator))
        return self._each(generator, first)

    def after(self, iterator: AsyncIterator[T]) -> T:
        """Returns the next item; waits for it. Raises StopIteration at the end."""
        item = self.call(_next(iterator))
        if item is None:
            raise StopIteration
        return item

    def _each(self, generator: AsyncGenerator[T, None], item: T | None) -> Iterator[T]:
        try:
            while item is not None:
                yield item
                item = self.call(_next(generator))
        finally:
            if not self._loop.is_closed():
                self.call(generator.aclose())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.call(_end_tasks())
        self.call(self._loop.shutdown_asyncgens())  # pages that nobody has read to their end
        self.call(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_tasks() -> None:
    """Cancels the tasks of calls that Ctrl-C interrupted, and waits for their end: each task must
    see the cancellation before the loop stops."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)
