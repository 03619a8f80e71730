"""A private event loop in a thread of its own, through which plain code calls async code."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")


class ClosedPortal(RuntimeError):
    """A call that comes after the close: nothing of it has begun."""


class Portal:
    """Calls from any thread but its own. `close` ends the thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._calls = Lock()
        """Held while a call is given to the loop: none comes behind the last that `close` waits
        for, where it would never be answered."""
        self._is_closed = False
        self._thread = Thread(target=self._loop.run_forever, name="metasrv-sdk", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns or raises the result of a coroutine. Ctrl-C cancels it, and so does a close."""
        with self._calls:
            if self._is_closed:
                work.close()
                raise ClosedPortal("the client is closed")
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
            with suppress(ClosedPortal):  # the close has ended it
                self.call(generator.aclose())

    def close(self) -> None:
        with self._calls:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(_end(self._loop), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Ends all that runs in the loop of a portal that takes no more calls."""
    await _end_tasks()
    await loop.shutdown_asyncgens()  # pages that nobody has read to their end
    await loop.shutdown_default_executor()


async def _end_tasks() -> None:
    """Cancels the tasks of calls under way, and of those that Ctrl-C interrupted, and waits for
    their end: each task must see the cancellation before the loop stops."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)
