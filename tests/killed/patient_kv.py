"""A client of the store for whoever looks on at a life."""

from keys.store.kv import Get, KeyPage, Request, TxnAnswer
from tests.crash.planted import Client

PATIENCE = 20


class PatientKv(Client):
    """Whoever looks on is in no hurry: its deadlines would pass as fast as our time does."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        return await super().txn(request, deadline_ms=deadline_ms * PATIENCE)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        return await super().range(get, deadline_ms=deadline_ms * PATIENCE, revision=revision)
