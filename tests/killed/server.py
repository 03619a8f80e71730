"""One server as a process of its own: it leads on a real etcd, and kills itself where it is told.

It is forked by zygote.py. With the test it speaks over a socket, a JSON line each: what happens to
it, and what a client asks of it.
"""

import asyncio
import base64
import os
import signal
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import structlog

from keys.model.records import ProcedureKey
from keys.store.etcd import EtcdKv
from keys.store.kv import Put, Request, TxnAnswer
from metasrv.leadership.election import Election, ElectionTiming, ServerIdentity, win
from metasrv_base.errors import MetaError
from procedures.engine.control import Command, Control
from procedures.kinds.registry import KINDS
from tests.crash.enumeration import BY_NAME, attempt
from tests.fakes.chance import SeededIds
from tests.fakes.cluster import CLUSTER_ID, LIMITS
from tests.fakes.faults import Mode
from tests.fakes.faulty_ports import FaultyKv
from tests.fakes.holders import FakeHolders
from tests.fakes.term import Server, World, lead
from tests.killed.door import Door
from tests.killed.fault import Orders, SoughtPlan
from tests.killed.loop import SPEED, FastLoop
from tests.killed.plane_file import (
    FileJobs,
    FilePlacement,
    PlaneFile,
    beat_on,
    enrol,
    pickled,
)
from tests.killed.post import PostingDoor, PostingJobs, PostingKv
from tests.sim.loop import SimClock

DEADLINE_MS = 300_000  # of a call: its time is real, but for what it waits before it is sent
TTL_MS = 36_000_000  # the test ends a lease itself, as etcd does when its time is over


def serve(orders: Orders) -> None:
    """Until its term ends; it may well be killed before."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))
    try:
        with asyncio.Runner(loop_factory=FastLoop) as runner:
            runner.run(_serve(orders))
    except Exception:
        (Path(orders["folder"]) / f"broken-{orders['number']}").write_text(traceback.format_exc())
        raise


async def _serve(orders: Orders) -> None:
    reader, writer = await asyncio.open_unix_connection(Path(orders["folder"]) / "door")
    door = Door(reader, writer, orders["number"])
    process = Process(orders, door)
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(door.listen(process.obey))
        await process.lead()
        listening.cancel()
    writer.close()


class Process:
    """Implements Fate and Witness of its own server."""

    def __init__(self, orders: Orders, door: Door) -> None:
        self._orders, self._door = orders, door
        self._clock = SimClock(cast(Any, asyncio.get_running_loop()))
        self._scenario = BY_NAME[orders["scenario"]]
        self._ids = SeededIds(self._clock, orders["number"])
        self._in_doubt: set[Request] = set()
        self._written: dict[bytes, bytes] = {}
        self._is_dying = False
        fault = orders["fault"]
        mode = Mode(fault["mode"]) if fault else Mode.CRASH_BEFORE
        self._plan = SoughtPlan(mode=mode, sought=fault, tell=lambda: door.tell("met"))
        self._server: Server | None = None
        # Time flies, the work does not: a deadline leaves as much real time as it would.
        slower = SPEED * orders["patience"]
        deadline_ms = {self._scenario.kind: self._scenario.deadline_ms}
        self._kinds = {
            name: replace(kind, deadline_ms=(deadline_ms.get(name) or kind.deadline_ms) * slower)
            for name, kind in KINDS.items()
        }

    async def lead(self) -> None:
        orders, clock = self._orders, self._clock
        kv = await EtcdKv.connect([orders["endpoint"]], orders["prefix"].encode())
        me = ServerIdentity(orders["name"], "http://127.0.0.1:1", "0")
        election = Election(kv, clock, me, ElectionTiming(TTL_MS, TTL_MS, DEADLINE_MS))
        session = await election.open_session()
        fence = await win(election, session, clock, lambda leader: None)
        self._server = Server(orders["name"], str(orders["number"]), fence, self._plan)
        self._door.tell("won", term=fence.mod_revision)
        file = PlaneFile(Path(orders["folder"]), clock)
        world = World(
            kv=FaultyKv(PostingKv(kv, self.post), self._plan, self, self, self._written.get),
            plan=self._plan,
            fate=self,
            cluster_id=CLUSTER_ID,
            door=PostingDoor(file, self.post),
            placement_of=partial(FilePlacement, file),
            jobs=PostingJobs(FileJobs(file), self.post),
            schema_sync=FakeHolders(clock),
            clock=clock,
            ids=self._ids,
            kinds=self._kinds,
            limits=LIMITS,
            deadline_ms=DEADLINE_MS,
            one_transaction=self._scenario.one_transaction,
            sizes=self._scenario.sizes,
        )
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(self._begin(self._server, file))
            await lead(self._server, world)
            beating.cancel()

    async def _begin(self, server: Server, file: PlaneFile) -> None:
        """Says so when the term has begun and every node is known: an order to a stranger fails."""
        await server.ready.wait()
        assert server.book is not None
        await enrol(file, server.book)
        self._door.tell("ready")
        await beat_on(file, server.book)

    # ---- what a client asks

    async def obey(self, what: str, procedure: str) -> None:
        """`submit`, `cancel`, `repeat`, or just `answer`.

        An error is an answer that the client does not get.
        """
        if what == "answer":
            self._door.tell("answers")
            return
        assert self._server is not None
        manager = self._server.manager
        try:
            if what == "cancel":
                await manager.control(procedure, Command(Control.CANCEL, by="anna"))
                return
            self._plan.armed = what == "submit"
            said = await attempt(manager, self._scenario, self._kinds, self._ids)
        except MetaError:
            if what != "cancel":
                self._door.tell("submitted", procedure=None, replayed=False)
        else:
            self._door.tell("submitted", procedure=said.procedure, replayed=said.replayed)

    # ---- Fate

    async def die(self) -> None:
        """Leaves the late requests with the test, and dies."""
        self._is_dying = True
        for work in (*self._plan.late, *self._plan.late_in_term):
            await work()
        os.kill(os.getpid(), signal.SIGKILL)

    def post(self, *work: object) -> None:
        """Called with all that is sent: on the point of death, it goes no further than the test."""
        if self._is_dying:
            self._door.tell("late", work=base64.b64encode(pickled(work)).decode())
            os.kill(os.getpid(), signal.SIGKILL)

    async def depose(self) -> None:
        self._stand_still("deposed")

    async def stop(self) -> None:
        self._stand_still("stops")

    async def fill(self) -> None:
        self._stand_still("full")

    def _stand_still(self, why: str) -> None:
        """Until the test lets us go on."""
        self._door.tell(why)
        os.kill(os.getpid(), signal.SIGSTOP)

    # ---- Witness

    def is_full(self) -> bool:
        """etcd says so itself."""
        return False

    def answered(self, request: Request, answer: TxnAnswer) -> None:
        if not request.writes:
            return
        start, end = ProcedureKey.under()
        if answer.succeeded:
            self._written.update(
                (write.key, write.value)
                for write in request.writes
                if isinstance(write, Put) and start <= write.key < end
            )
        doubted = request in self._in_doubt
        self._in_doubt.discard(request)
        self._door.tell(
            "answered", done=answer.succeeded, revision=answer.revision, doubted=doubted
        )

    def told_nothing(self, request: Request) -> None:
        if request.writes:
            self._in_doubt.add(request)
