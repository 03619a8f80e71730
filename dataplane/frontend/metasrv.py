"""metasrv over HTTP: the `Leader` port of the holder, by the one typed client."""

from urllib.parse import quote

from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
)
from metasrv_base.wire.http.client import HttpClient

REGISTER_MS_MAX = 5_000
SIGN_OFF_MS_MAX = 3_000


class HttpHolderLeader:
    """Asks the servers it was given in turn, and the leader that they name."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def register(
        self, request: HolderRegisterRequest, deadline_ms: int
    ) -> HolderRegisterAnswer:
        """Repeatable: the same incarnation registers once."""
        deadline_ms = min(deadline_ms, REGISTER_MS_MAX)
        answer = await self._client.request(
            "POST",
            f"{_path(request.holder_id)}/register",
            json=request,
            deadline_ms=deadline_ms,
            try_ms=max(1, deadline_ms // 3),
            repeatable=True,
        )
        registered = answer.body(HolderRegisterAnswer)
        self._client.learn(registered.metasrvs)
        return registered

    async def acknowledge(self, request: AcknowledgeRequest, deadline_ms: int) -> AcknowledgeAnswer:
        answer = await self._client.request(
            "PUT",
            f"{_path(request.holder_id)}/acknowledge",
            json=request,
            deadline_ms=deadline_ms,
            try_ms=max(1, deadline_ms // 2),
        )
        return answer.body(AcknowledgeAnswer)

    async def sign_off(self, holder_id: str, incarnation: str) -> None:
        """Durable when it returns: nobody waits for this holder any more."""
        await self._client.request(
            "DELETE",
            _path(holder_id),
            params={"incarnation": incarnation},
            deadline_ms=SIGN_OFF_MS_MAX,
            try_ms=SIGN_OFF_MS_MAX // 2,
            repeatable=True,
        )


def _path(holder_id: str) -> str:
    return f"/internal/v1/holders/{quote(holder_id, safe='')}"
