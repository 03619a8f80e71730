"""A real etcd of three members, and who of them leads."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from metasrv_base.clock import SystemClock
from tests.etcd.process import EtcdProcess

MEMBERS = 3
ELECTED_S = 60
ANSWER_S = 2.0
LOOK_MS = 50
# An election by 100 ms, as of a single member, would never end on a busy machine.
TIMES = ("--heartbeat-interval=100", "--election-timeout=1000")


class EtcdCluster:
    """`members` are started together; each is then killed, paused and started by itself."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.members: list[EtcdProcess] = []
        for number in range(MEMBERS):
            (folder / f"e{number}").mkdir(parents=True, exist_ok=True)
            self.members.append(EtcdProcess(folder / f"e{number}"))
        self.join([member.peer_url for member in self.members], *flags)

    def join(self, peer_urls: Sequence[str], *flags: str) -> None:
        """Before the start: where the members look for each other."""
        all_of_them = ",".join(f"e{number}={url}" for number, url in enumerate(peer_urls))
        for number, (member, url) in enumerate(zip(self.members, peer_urls, strict=True)):
            member.flags = (
                *(f"--name=e{number}", f"--initial-cluster={all_of_them}"),
                *(f"--initial-advertise-peer-urls={url}", *TIMES, *flags),
            )

    @property
    def endpoints(self) -> list[str]:
        return [member.endpoint for member in self.members]

    def start(self) -> None:
        with ThreadPoolExecutor(MEMBERS) as pool:
            list(pool.map(EtcdProcess.start, self.members))

    def kill(self) -> None:
        for member in self.members:
            member.kill()

    async def leader(self) -> EtcdProcess:
        """By its own word. AssertionError if no member leads within ELECTED_S."""
        clock = SystemClock()
        end_ms = clock.mono_ms() + ELECTED_S * 1000
        async with httpx.AsyncClient(trust_env=False, timeout=ANSWER_S) as http:
            while clock.mono_ms() < end_ms:
                for member in self.members:
                    if await _leads(http, member):
                        return member
                await clock.sleep_ms(LOOK_MS)
        raise AssertionError("no member leads")


async def ids_of(members: Sequence[EtcdProcess]) -> list[str]:
    """In hexadecimal, as members name themselves to each other."""
    async with httpx.AsyncClient(trust_env=False, timeout=5) as http:
        told = [await http.post(f"{one.url}/v3/maintenance/status", json={}) for one in members]
    return [f"{int(one.json()['header']['member_id']):x}" for one in told]


async def _leads(http: httpx.AsyncClient, member: EtcdProcess) -> bool:
    try:
        answer = await http.post(f"{member.url}/v3/maintenance/status", json={})
    except httpx.TransportError:
        return False
    told = answer.json()
    return bool(answer.is_success and told["header"]["member_id"] == told.get("leader"))
