"""Changes of a region's copies that its leader has asked for, on their way to the store."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from procedures.kinds.failover.change_copies import ChangeCopies

Compared = tuple[str, int, int]
"""Region id, epoch and version of the copies: of several changes that compare the same, one is
done."""


def compared(change: ChangeCopies) -> Compared:
    return change.region_id, change.epoch, change.version


def is_same(change: ChangeCopies, other: ChangeCopies) -> bool:
    """Whether both ask for the same, whatever reason they give."""
    return change.model_copy(update={"reason": other.reason}) == other


@dataclass(frozen=True, slots=True)
class CopyChanges:
    """The submissions of one term that the store has not answered. One that is stored is among the
    living procedures."""

    _submitted: dict[Compared, asyncio.Event] = field(default_factory=dict)

    async def settled(self, change: ChangeCopies) -> None:
        """Returns once no change that compares the same is being submitted."""
        while (event := self._submitted.get(compared(change))) is not None:
            await event.wait()

    @contextmanager
    def submitting(self, change: ChangeCopies) -> Iterator[None]:
        """Call it without an await behind `settled`."""
        event = self._submitted[compared(change)] = asyncio.Event()
        try:
            yield
        finally:
            del self._submitted[compared(change)]
            event.set()
