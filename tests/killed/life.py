"""One life on a real etcd: a server is killed or stopped at one call, another takes over.

As tests/crash/enumeration.py, which judges both. Every server is a process (server.py); the
client, the nodes' disks and time are here.
"""

import asyncio
import base64
import json
import pickle
import signal
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from keys.model.cluster import LeaderKey
from keys.model.records import ProcedureKey, ProcedureOutcome, ProcedureRecord
from keys.store.etcd import EtcdKv
from keys.store.kv import Delete, Get, Kv, Put, Request, Watched
from keys.store.mvcc import TO_THE_END
from keys.value import decode
from metasrv_base.errors import MetaError
from procedures.engine.submit import Submitted
from tests.crash.enumeration import (
    BY_NAME,
    STOPS,
    Cell,
    judge,
    outcomes_of,
    repeated,
)
from tests.fakes.cluster import DEADLINE_MS, FULL_MS, TAKEOVER_MS, Cluster
from tests.fakes.faults import Mode
from tests.keys.store.conformance.operators import EtcdOperator
from tests.killed.fault import Fault, Orders
from tests.killed.forked import Forked, Zygote
from tests.killed.history import history_between, judge_writes
from tests.killed.loop import SPEED
from tests.killed.patient_kv import PATIENCE, PatientKv
from tests.killed.plane_file import PlaneFile
from tests.killed.post import deliver
from tests.procedures.harness.agree import history_of

FOREVER_MS = 1 << 62
LIFE_S_MAX = 120  # real ones, on a slow machine
CANCEL_S_MAX = 10  # real ones: a fault that has not come by then comes after the cancellation
LOOK_MS = 10 * SPEED
OVER = b"__over"  # the last key of a life, which no server writes


@dataclass(frozen=True, slots=True)
class Place:
    """Where a life is lived: nobody else has the prefix or the folder."""

    zygote: Zygote
    endpoint: str
    prefix: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Lived:
    happened: bool
    """Whether the server came to the call where it was to fail."""
    wrong: tuple[str, ...]
    sometimes: Counter[str]


@dataclass
class Life:
    """The world of one life, and what a client does in it."""

    place: Place
    scenario: str
    cell: Cell
    fault: Fault
    kv: Kv
    cluster: Cluster
    """Its store is the real one; its plane that of the file, as it was at the start or is now."""
    file: PlaneFile
    fault_first: bool
    """Whether deadlines and a client that cancels wait for the fault."""
    started_at: int = 0
    """The first revision."""
    servers: list[Forked] = field(default_factory=list)
    sleepers: list[Forked] = field(default_factory=list)
    late: list[tuple[Any, ...]] = field(default_factory=list)
    happened: bool = False
    to_cancel: str | None = None
    """The procedure that the client wants cancelled, from then on."""
    asked_to_cancel: set[tuple[int, str | None]] = field(default_factory=set)
    """Numbers of servers that were asked for that, with the procedure."""
    electing: asyncio.Lock = field(default_factory=asyncio.Lock)
    full_until_ms: int = 0
    """The store is full, and its operator comes then. 0: it is not."""

    @property
    def leader(self) -> Forked:
        return self.servers[-1]

    # ---- servers

    async def start(self, name: str, fault: Fault | None = None) -> Forked:
        """A server that leads, or has ended on the way to it. Whoever led before has no lease."""
        await self._end_lease()
        place = self.place
        server = place.zygote.expect(name)
        self.servers.append(server)
        orders = Orders(
            number=server.number,
            name=name,
            scenario=self.scenario,
            endpoint=place.endpoint,
            prefix=place.prefix,
            folder=str(place.folder),
            fault=fault,
            patience=PATIENCE if self.fault_first else 1,
        )
        await place.zygote.fork(server, orders)
        await server.until("term")
        await server.until("is_ready")
        if self.cell.mode is Mode.LATE_IN_TERM:
            await self._arrive()
        return server

    async def _end_lease(self) -> None:
        """As etcd does when nobody has renewed it for its time."""
        page = await self.kv.range(Get(bytes(LeaderKey())), deadline_ms=DEADLINE_MS)
        for item in page.items:
            await self.kv.revoke(cast(Any, item.lease), deadline_ms=DEADLINE_MS)

    async def elect_rivals(self) -> None:
        """As tests.fakes.cluster: the last of them leads on, the others die as they have won."""
        async with self.electing:
            *passing, last = self._successors()
            for name in passing:
                (await self.start(name)).signal(signal.SIGKILL)
            await self.start(last)

    def _successors(self) -> tuple[str, ...]:
        if self.cell.who != "same":
            return ("meta-2",)
        wins_again = self.cell.mode in (Mode.RIVAL, *STOPS)
        return ("meta-2", "meta-1") if wins_again else ("meta-1",)

    async def hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads the messages of one server until it is gone."""
        with suppress(ConnectionError):
            while line := await reader.readline():
                said = json.loads(line)
                server = next(one for one in self.servers if one.number == said["number"])
                server.writer = writer
                server.says(said)
                await self._heard(server, said)
        writer.close()

    async def _heard(self, server: Forked, said: dict[str, Any]) -> None:
        match said["tells"]:
            case "met":
                self.happened = True
            case "late":
                self.late.append(pickle.loads(base64.b64decode(said["work"])))
            case "stops":
                self.sleepers.append(server)
            case "deposed":
                await server.until("is_stopped")
                if self.cell.mode is Mode.RIVAL or self.cell.who == "another":
                    await self.elect_rivals()
                server.wake()
            case "full":
                self.full_until_ms = FOREVER_MS
                await server.until("is_stopped")
                await in_own_time(EtcdOperator(self.place.endpoint).arm())
                self.full_until_ms = self.cluster.clock.mono_ms() + FULL_MS
                server.wake()

    async def _look_again(self) -> None:
        """A moment later. The operator of a full store has come by then, if it is time."""
        await self.cluster.clock.sleep_ms(LOOK_MS)
        if self.full_until_ms and self.cluster.clock.mono_ms() > self.full_until_ms:
            await in_own_time(EtcdOperator(self.place.endpoint).disarm())
            self.full_until_ms = 0

    # ---- the life

    async def live(self) -> Lived:
        """To its end, or to what hangs."""
        try:
            async with asyncio.timeout(LIFE_S_MAX * SPEED):
                wrong = await self._live()
        except TimeoutError:
            return Lived(self.happened, (f"never ends: {self.servers}",), Counter())
        return await self._judged(wrong)

    async def _live(self) -> list[str]:
        scenario = BY_NAME[self.scenario]
        fence = await self.cluster.bootstrap()
        self.started_at = fence.mod_revision
        await scenario.given(self.cluster, fence)
        self.file.store(self.cluster.plane)
        await self._write(Delete(bytes(LeaderKey())))
        await self.start("meta-1", self.fault)
        answered = await self.ask("submit")
        procedure = answered.procedure if answered else None
        if scenario.cancel_after_ms is not None and procedure is not None:
            await self._cancel(procedure, scenario.cancel_after_ms)
        await self.settled()
        for sleeper in self.sleepers:
            sleeper.wake()
        await self._deposed_end()
        wrong = await self._arrive()
        known = outcomes_of(history_of(await self.history())).keys()
        again = await self._repeat()
        return wrong + (repeated(again, procedure, known) if again else ["the repeat was refused"])

    async def _cancel(self, procedure: str, after_ms: int) -> None:
        patient_ms = CANCEL_S_MAX * SPEED * 1000 if self.fault_first else 0
        until_ms = self.cluster.clock.mono_ms() + patient_ms
        while self.cluster.clock.mono_ms() < until_ms and await self._is_to_come():
            await self._look_again()
        await self.cluster.clock.sleep_ms(after_ms)
        self.to_cancel = procedure
        self._ask_to_cancel()

    def _ask_to_cancel(self) -> None:
        """Asks the leader, once. Whoever was asked may have died before it noted that."""
        request = self.leader.number, self.to_cancel
        if self.to_cancel is None or request in self.asked_to_cancel:
            return
        if self.leader.is_ready and not self.is_down():
            self.asked_to_cancel.add(request)
            self.leader.do("cancel", self.to_cancel)

    async def _is_to_come(self) -> bool:
        """Whether the fault may still meet the procedure."""
        return not (self.happened or self.is_down()) and bool(await self.living())

    async def ask(self, what: str) -> Submitted | None:
        """None: the client was told nothing, or does not wait for whoever stands still."""
        server = self.leader
        await server.until("is_ready")
        server.do(what)
        while server.submitted.empty() and not (server.has_ended or server in self.sleepers):
            await self._look_again()
        if server.submitted.empty():
            return None
        said = server.submitted.get_nowait()
        return said["procedure"] and Submitted(said["procedure"], said["replayed"])

    async def _repeat(self) -> Submitted | None:
        """None: it was refused. A leader that ended before it answered has told nothing."""
        while True:
            server = self.leader
            again = await self.ask("repeat")
            if again is not None and BY_NAME[self.scenario].cancel_after_ms is not None:
                self.to_cancel = again.procedure  # begun by this request, if the first was lost
            await self.settled()
            if again is not None or server is self.leader:
                return again

    async def quiet(self) -> None:
        """Waits until no procedure is left, whoever must take over for that."""
        scenario = BY_NAME[self.scenario]
        ends_by_itself = ProcedureOutcome.SUCCEEDED in scenario.ends
        while (living := await self.living()) or self.is_unsettled():
            if scenario.cancel_after_ms is not None and not ends_by_itself:
                self.to_cancel = self.to_cancel or await self._found()
                if self.to_cancel in living:
                    self._ask_to_cancel()
            await self.take_over()
            await self._look_again()

    async def settled(self) -> None:
        """Quiet, and by an answer of the leader all is heard that it told before."""
        while True:
            await self.quiet()
            server, before = self.leader, self.leader.answers
            server.do("answer")
            while server.answers == before and not (server.has_ended or server in self.sleepers):
                await self._look_again()
            if server is self.leader and not self.is_unsettled() and not await self.living():
                return

    def is_unsettled(self) -> bool:
        """Somebody will do something that nobody has to ask for."""
        return (
            self.full_until_ms > 0
            or self.electing.locked()
            or self.is_down()
            or not self.leader.is_ready
        )

    def is_down(self) -> bool:
        return self.leader.has_ended or self.leader in self.sleepers

    async def take_over(self) -> None:
        """Where the leader is down, and nobody is being elected."""
        await self.cluster.clock.sleep_ms(TAKEOVER_MS)
        if self.leader in self.sleepers:
            await self.leader.until("is_stopped")
            await self.elect_rivals()
        async with self.electing:
            if self.leader.has_ended:
                await self.start(self._successors()[0])

    async def living(self) -> list[str]:
        return list(await self._records())

    async def _records(self) -> dict[str, bytes]:
        """The stored records, by procedure."""
        start, end = ProcedureKey.under()
        page = await self.kv.range(Get(start, end), deadline_ms=DEADLINE_MS)
        return {item.key.removeprefix(start).decode(): item.value for item in page.items}

    async def _found(self) -> str | None:
        """The procedure that nobody else has begun, as a client finds it whose submit was not
        answered; None: there is none."""
        for procedure, stored in (await self._records()).items():
            if decode(ProcedureRecord, stored, key=procedure).parent is None:
                return procedure
        return None

    async def _deposed_end(self) -> None:
        """Every server but the last learns that it does not lead, by a write or a sweep."""
        while not all(server.has_ended for server in self.servers[:-1]):
            await self._look_again()

    async def _arrive(self) -> list[str]:
        """Delivers the requests that were on their way when a server died; returns the faults."""
        before = await self.stored()
        late, self.late = self.late, []
        for work in late:
            with suppress(MetaError):
                await deliver(work, self.kv, self.file)
        if self.cell.mode is Mode.LATE and await self.stored() != before:
            return ["what arrived late was taken"]
        return []

    async def stored(self) -> dict[bytes, bytes]:
        page = await self.kv.range(Get(b"", TO_THE_END), deadline_ms=DEADLINE_MS)
        return {item.key: item.value for item in page.items}

    async def _write(self, write: Put | Delete) -> int:
        answer = await self.kv.txn(Request(writes=(write,)), deadline_ms=DEADLINE_MS)
        return answer.revision

    # ---- the end

    async def history(self) -> list[Watched]:
        """Everything that was ever written here, revision by revision."""
        last = await self._write(Put(OVER, b"{}"))
        return await history_between(self.kv, self.started_at, last, without=OVER)

    async def _judged(self, wrong: list[str]) -> Lived:
        broken = sorted(path.read_text() for path in self.place.folder.glob("broken-*"))
        log = await self.history()
        sometimes, of_deposed = judge_writes(self.servers, log)
        self.cluster.plane = self.file.load()
        agreement = history_of(log)
        wrong += [*broken, *of_deposed]
        wrong += judge(self.cluster, agreement, BY_NAME[self.scenario], self.cell)
        sometimes += Counter(outcomes_of(agreement).values())
        return Lived(self.happened, tuple(wrong), sometimes)


async def in_own_time(work: Coroutine[Any, Any, None]) -> None:
    """On a loop whose time is that of its timeouts."""
    await asyncio.to_thread(asyncio.run, work)


@asynccontextmanager
async def world(
    place: Place, scenario: str, cell: Cell, fault: Fault, *, fault_first: bool
) -> AsyncIterator[Life]:
    """Its processes end with it."""
    kv = PatientKv(await EtcdKv.connect([place.endpoint], place.prefix.encode()))
    loop = cast(Any, asyncio.get_running_loop())
    cluster = Cluster(loop, make_store=lambda clock: cast(Any, kv))
    file = PlaneFile(place.folder, cluster.clock)
    life = Life(place, scenario, cell, fault, kv, cluster, file, fault_first)
    door = await asyncio.start_unix_server(life.hear, place.folder / "door")
    try:
        yield life
    finally:
        for server in life.servers:
            await server.end()
        door.close()
        await kv.close()
