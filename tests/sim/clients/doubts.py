"""A commit of one procedure whose answer is lost: it is done, and its leader does not know."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from keys.model.records import IdempotencyKey, ProcedureKey
from tests.sim.cluster.message_fates import Weather

COMMIT_S = 3.0
"""The longest wait for such a commit."""
RECORDS, _ = ProcedureKey.under()
ASKED, _ = IdempotencyKey.under()


@dataclass
class Doubt:
    """Loses the answer to the first commit but that of the submission, of the procedure submitted
    next.

    Somebody else may submit one at that moment; then it is the other's.
    """

    weather: Weather
    struck: "asyncio.Future[None]"
    record: bytes | None = None
    """Key of the procedure, once it is known."""

    def __post_init__(self) -> None:
        if self.weather.is_tried:
            self.weather.doubts.append(self.meets)

    def meets(self, keys: Sequence[bytes]) -> bool:
        """Whether the answer to a transaction that writes *keys* is to be lost."""
        if self.record is None:
            if any(key.startswith(ASKED) for key in keys):
                self.record = next((key for key in keys if key.startswith(RECORDS)), None)
            return False
        if self.record not in keys:
            return False
        self.end()
        if not self.struck.done():
            self.struck.set_result(None)
        return True

    def end(self) -> None:
        if self.meets in self.weather.doubts:
            self.weather.doubts.remove(self.meets)

    async def has_come(self, procedure: str) -> bool:
        """Whether a commit of that procedure is, or has just been, in doubt."""
        try:
            async with asyncio.timeout(COMMIT_S):
                await self.struck
        except TimeoutError:
            return False
        finally:
            self.end()
        return self.record == bytes(ProcedureKey(procedure))
