"""metasrv over HTTP: the `Leader` port of the heartbeat, by the one typed client."""

from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)

REGISTER_MS_MAX = 5_000


class HttpNodeLeader:
    """Asks the servers it was given in turn, and the leader that they name."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def register(self, request: RegisterRequest) -> RegisterAnswer:
        """Repeatable: the same incarnation registers once."""
        answer = await self._client.request(
            "POST",
            f"/internal/v1/nodes/{request.node_id}/register",
            json=request,
            deadline_ms=REGISTER_MS_MAX,
            try_ms=REGISTER_MS_MAX // 3,
            repeatable=True,
        )
        registered = answer.body(RegisterAnswer)
        self._client.learn(registered.metasrvs)
        return registered

    async def heartbeat(self, request: HeartbeatRequest, deadline_ms: int) -> HeartbeatAnswer:
        answer = await self._client.request(
            "PUT",
            f"/internal/v1/nodes/{request.node_id}/heartbeat",
            json=request,
            deadline_ms=deadline_ms,
            try_ms=deadline_ms // 2,
        )
        return answer.body(HeartbeatAnswer)
