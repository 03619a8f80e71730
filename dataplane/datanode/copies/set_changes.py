"""Leaders ask metasrv that copies join their sets, or leave them (P5.10)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import structlog

from dataplane.datanode.copies.led_region import LedRegion
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.node.copy_changes import CHANGES_MAX, CopyChange, CopyChangeResult

PACE_MS = 500

log = structlog.get_logger()


class SetPort(Protocol):
    """metasrv, as it is asked for changes. Raises the five errors."""

    async def change_copies(self, changes: Sequence[CopyChange]) -> Sequence[CopyChangeResult]:
        """Returns the results in the order of the changes."""
        ...


class SetChanges:
    """One request at a time, with the changes of all regions. *led*: those that there are now."""

    def __init__(self, led: Callable[[], Iterable[LedRegion]], port: SetPort, clock: Clock) -> None:
        self._led, self._port, self._clock = led, port, clock

    async def run(self) -> None:
        """Asks for ever, at its own pace. What was not answered is asked for again."""
        while True:
            await self.ask()
            await self._clock.sleep_ms(PACE_MS)

    async def ask(self) -> None:
        """Once, of all regions; if they are too many for one request, first of those in which a
        group waits."""
        changes = [
            (led, change) for led in self._led() if (change := led.next_change()) is not None
        ]
        changes.sort(key=lambda each: not each[0].waits_for)
        changes = changes[:CHANGES_MAX]
        if not changes:
            return
        try:
            results = await self._results([change for _, change in changes])
        except MetaError as error:
            log.info("copy_changes_unanswered", code=error.code, changes=len(changes))
            return
        for (led, change), result in zip(changes, results, strict=True):
            led.changed(change, result)
            code = None if result.error is None else result.error.code
            facts = {"region_id": change.region_id, "change": change.change, "code": code}
            log.info(
                "copy_change_answered", node=change.node, version=result.copies_version, **facts
            )

    async def _results(self, changes: Sequence[CopyChange]) -> Sequence[CopyChangeResult]:
        """Asks once more without `eligible` where a server refuses it that does not know it: a set
        must be able to shrink. Raises as the port."""
        try:
            return await self._port.change_copies(changes)
        except Refused:
            plain = [change.model_copy(update={"eligible": False}) for change in changes]
            if plain == list(changes):
                raise
            return await self._port.change_copies(plain)
