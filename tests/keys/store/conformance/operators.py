"""An operator's remedy for a store without space, on either store."""

from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from keys.store.memory import MemoryKv
from tests.keys.store.conformance.store import DEADLINE_MS


class Operator(Protocol):
    async def defragment(self) -> None: ...

    async def disarm(self) -> None: ...


@dataclass(frozen=True)
class MemoryOperator:
    kv: MemoryKv

    async def defragment(self) -> None:
        self.kv.defragment()

    async def disarm(self) -> None:
        self.kv.disarm()


@dataclass(frozen=True)
class EtcdOperator:
    """By etcd's JSON gateway, as `etcdctl defrag` and `etcdctl alarm disarm` do."""

    endpoint: str

    async def defragment(self) -> None:
        await self._ask("defragment", {})

    async def disarm(self) -> None:
        found = await self._ask("alarm", {"action": "GET"})
        for alarm in found.get("alarms", []):
            await self._ask("alarm", {"action": "DEACTIVATE", **alarm})

    async def arm(self) -> None:
        """The alarm of a member that has no space, without the want of it."""
        status = await self._ask("status", {})
        alarm = {"memberID": status["header"]["member_id"], "alarm": "NOSPACE"}
        await self._ask("alarm", {"action": "ACTIVATE", **alarm})

    async def _ask(self, what: str, body: dict[str, Any]) -> Any:
        async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE_MS / 1000) as http:
            url = f"http://{self.endpoint}/v3/maintenance/{what}"
            answer = await http.post(url, json=body)
        answer.raise_for_status()
        return answer.json()
