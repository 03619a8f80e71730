"""metasrv over HTTP: the `Leader` port of the heartbeat, by the one typed client."""

from collections.abc import Sequence

from dataplane.datanode.membership.membership import Membership
from metasrv_base.errors import Unavailable
from metasrv_base.wire.api.cluster import SettingList
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.copy_changes import (
    CopyChange,
    CopyChangeResult,
    CopyChangesAnswer,
    CopyChangesRequest,
)
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.silences import SilenceAnswer, SilenceReport

REGISTER_MS_MAX = 5_000
CHANGE_COPIES_MS_MAX = 5_000
SETTINGS_MS_MAX = 5_000


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

    async def report_silence(self, report: SilenceReport, deadline_ms: int) -> SilenceAnswer:
        """Repeatable: a look that is made twice promotes once."""
        answer = await self._client.request(
            "POST",
            f"/internal/v1/nodes/{report.node_id}/silent-leaders",
            json=report,
            deadline_ms=deadline_ms,
            repeatable=True,
        )
        return answer.body(SilenceAnswer)

    async def change_copies(self, request: CopyChangesRequest) -> CopyChangesAnswer:
        """Repeatable: a change is done once."""
        answer = await self._client.request(
            "POST",
            f"/internal/v1/nodes/{request.node_id}/copies",
            json=request,
            deadline_ms=CHANGE_COPIES_MS_MAX,
            repeatable=True,
        )
        return answer.body(CopyChangesAnswer)

    async def heartbeat(self, request: HeartbeatRequest, deadline_ms: int) -> HeartbeatAnswer:
        answer = await self._client.request(
            "PUT",
            f"/internal/v1/nodes/{request.node_id}/heartbeat",
            json=request,
            deadline_ms=deadline_ms,
            try_ms=deadline_ms // 2,
        )
        return answer.body(HeartbeatAnswer)

    async def settings(self) -> SettingList:
        """All settings, as they are stored after this call."""
        answer = await self._client.request(
            "GET", "/internal/v1/settings", deadline_ms=SETTINGS_MS_MAX, repeatable=True
        )
        return answer.body(SettingList)


class NodeCopySets:
    """Implements SetPort."""

    def __init__(self, membership: Membership, leader: HttpNodeLeader) -> None:
        self._membership, self._leader = membership, leader

    async def change_copies(self, changes: Sequence[CopyChange]) -> Sequence[CopyChangeResult]:
        """Raises Unavailable before the node is registered."""
        me = self._membership
        if me.cluster_id is None or not me.is_registered:
            raise Unavailable("not-ready", what="the node", reason="it is not registered")
        request = CopyChangesRequest(
            cluster_id=me.cluster_id,
            node_id=me.identity.node_id,
            incarnation=me.identity.incarnation,
            changes=list(changes),
        )
        return (await self._leader.change_copies(request)).results
