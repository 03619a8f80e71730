"""Items that a thread makes, the next one while the last one is handled."""

import asyncio
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

T = TypeVar("T")


class LookAhead(Generic[T]):
    """Takes the items of a generator in threads, one after the other.

    At most one item is made that nobody has taken. `close` must be called; it waits for nothing, so
    that it may be called by a task that is cancelled.
    """

    def __init__(self, items: Generator[T], ended: Callable[[], None]) -> None:
        """Takes nothing yet. *ended* is called once after `close`, when no thread runs *items* any
        more; it gives back the memory that they take."""
        self._items = items
        self._ended = ended
        self._next: asyncio.Future[T | None] | None = None

    def begin(self) -> None:
        """Has the next item made. Called where one more will be taken."""
        assert self._next is None, "one item is made at a time"
        loop = asyncio.get_running_loop()
        self._next = loop.run_in_executor(None, next, self._items, None)

    async def take(self) -> T | None:
        """The next item; None: there is none. Raises as the generator does."""
        if self._next is None:
            self.begin()
        assert self._next is not None
        await asyncio.wait([self._next])  # cancelled, it leaves the thread's future alone
        made, self._next = self._next, None
        return made.result()

    def close(self) -> None:
        """Closes the generator, at once or when the thread that runs it is done."""
        if self._next is None:
            self._end()
        else:
            self._next.add_done_callback(self._end_behind)

    def _end_behind(self, made: asyncio.Future[T | None]) -> None:
        if not made.cancelled():
            made.exception()  # nobody wants it any more
        self._end()

    def _end(self) -> None:
        try:
            self._items.close()
        finally:
            self._ended()
