"""One batch on its way to the store: the same bytes, until they are answered (P1.3)."""

from keys.commit.batch import Batch
from keys.store.kv import OUT_OF_SPACE, Kv, TxnAnswer
from metasrv_base.clock import Clock
from metasrv_base.errors import Refused, Unavailable, Unknown

RESEND_MS = 50  # first pause before an unanswered batch is sent again; doubles up to RESEND_MS_MAX
RESEND_MS_MAX = 2_000


class BatchSender:
    """Sends the batches of one term."""

    def __init__(self, kv: Kv, clock: Clock, *, deadline_ms: int) -> None:
        self._kv = kv
        self._clock = clock
        self._deadline_ms = deadline_ms
        self.is_out_of_space = False
        """Whether the store had no space for the last one that it answered."""

    async def send(self, batch: Batch) -> tuple[TxnAnswer, bool]:
        """The answer, and whether a copy was sent before that never was answered.

        Once a copy may be on its way, no failure of a later copy says that nothing was done. Raises
        Unavailable and Refused: nothing was.
        """
        in_doubt, pause_ms = False, RESEND_MS
        while True:
            try:
                answer = await self._kv.txn(batch.request, deadline_ms=self._deadline_ms)
            except (Unknown, Unavailable, Refused) as error:
                in_doubt = in_doubt or isinstance(error, Unknown)
                self.is_out_of_space = error.facts.get("reason") == OUT_OF_SPACE
                if not in_doubt:
                    raise
                await self._clock.sleep_ms(pause_ms)
                pause_ms = min(2 * pause_ms, RESEND_MS_MAX)
            else:
                self.is_out_of_space = False
                return answer, in_doubt
