"""Thousands of changes of one table wait for each other, while leaders die, stand still and are
not answered. Each takes its turn in the order of submission, whoever leads."""

from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from keys.model.records import ProcedureHistory, ProcedureHistoryKey, ProcedureKey
from keys.model.records import ProcedureOutcome as Ended
from keys.model.tables import TableInfo, TableInfoKey
from keys.value import decode
from metasrv.sdk.control.operations import Cluster
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.api.procedures import ProcedureBody
from tests.sim.clients.client import Session, pursued
from tests.sim.cluster.faults import Fault, leader_dies, leader_dies_writing, leader_stands_still
from tests.sim.length import SHORT
from tests.sim.scenario import Plot

PATH = "/v1/catalogs/main/schemas/public/tables/t0/alter"
ASK_MS = 3_000
AGAIN_MS = 300
CANCELS = 30
FAULTS: tuple[Fault, ...] = (leader_dies, leader_dies_writing, leader_stands_still)
AT_DEATH = "procedures that were queued when a leader fell"
CANCELLED = "a procedure that was cancelled in a long queue"

QUEUE = replace(SHORT, name="queue", writers=0, users=8, statements=160, changes=0)
SHORT_QUEUE = replace(QUEUE, name="short-queue", users=4, statements=25)
LONG_QUEUE = replace(QUEUE, name="long-queue", statements=500)


@dataclass
class Submitter:
    """Asks for one change after the other, each as soon as the one before it was accepted."""

    session: Session
    number: int
    accepted: dict[str, int] = field(default_factory=dict)
    """Procedure -> the value that it sets."""
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def option(self) -> str:
        return f"app.s{self.number}"

    async def run(self, changes: int) -> None:
        for value in range(1, changes + 1):
            procedure = await self._submitted(value)
            self.accepted[procedure] = value
            self.session.oracle.statements += 1

    async def _submitted(self, value: int) -> str:
        """The id of the procedure, however often that takes."""
        headers = {"idempotency-key": self.session.key(), "prefer": "wait=0"}
        body = {"operations": [{"op": "set_options", "options": {self.option: str(value)}}]}
        while True:
            try:
                answer = await self.session.http.request(
                    "POST", PATH, json=body, headers=headers, deadline_ms=ASK_MS
                )
                if answer.status == 202:
                    return answer.body(ProcedureBody).id
                return str(answer.headers["x-procedure-id"])
            except (Unknown, Unavailable):
                self.session.count("asked again with the same key")
            except MetaError as error:  # told once: it may be so until the leader changes
                self.refusals[error.code] += 1
                if self.refusals[error.code] == 1:
                    self.session.wrong(f"queue: {self.session.name} was refused: {error.code}")
            await self.session.clock.sleep_ms(AGAIN_MS)


class Queue(Plot):
    regions = 1

    def _actors(self) -> "list[tuple[str, Coroutine[Any, Any, None]]]":
        world, length = self.world, self.length
        self.cancelled: set[str] = set()
        self.judged = world.kv.revision
        self.last: Counter[str] = Counter()
        self.submitters = [
            Submitter(world.session(f"submitter-{n}"), n) for n in range(length.users)
        ]
        actors = [(one.session.name, one.run(length.statements)) for one in self.submitters]
        return [*actors, ("canceller", self._cancel(world.session("canceller")))]

    async def _cancel(self, session: Session) -> None:
        for _ in range(CANCELS):
            await session.think(1_000)
            accepted = [id for one in self.submitters for id in one.accepted]
            if accepted:
                procedure = session.random.choice(accepted[-200:])
                try:
                    await session.procedures.cancel(procedure)
                except MetaError as error:
                    session.count(f"refused: {error.code}")
                else:
                    self.cancelled.add(procedure)
                    session.count(CANCELLED)

    async def _trouble(self) -> None:
        """A leader falls while all changes wait, as an operator has paused them, and twice later
        on, while they run."""
        world, random = self.world, self.world.random
        world.weather.is_tried = True
        world.loop.spawn("world", self._look_at_order())
        operator = world.session("operator")
        await self._pause(operator, paused=True)
        least = self.length.users * self.length.statements * 4 // 5
        await self._over("a long queue", lambda: len(self._records()) >= least)
        world.weather.storm = world.weather.store_storm = 0.3
        for _ in range(3):
            fault = random.choice(FAULTS)
            self.faults.append(fault.__name__)
            world.weather.sometimes[AT_DEATH] += len(self._records())
            await self._happens(fault)
            await self._pause(operator, paused=False)
            await world.sleep_ms(random.uniform(1_000, 8_000))

    async def _pause(self, operator: Session, *, paused: bool) -> None:
        cluster = Cluster(operator.service)
        await pursued(operator, lambda _: cluster.set_pause(paused, "drill"))

    async def _look_at_order(self) -> None:
        """Values of one submitter only rise, whoever leads."""
        while True:
            self._look()
            await self.world.sleep_ms(self.look_ms)

    def _look(self) -> None:
        store = self.world.kv._store
        key = bytes(TableInfoKey(self.known[0].table_id))
        for entry in store.log_from(self.judged + 1):
            self.judged = entry.revision
            for event in entry.events:
                if event.key == key and event.value is not None:
                    self._rises(decode(TableInfo, event.value, key=key.decode()))

    def _rises(self, info: TableInfo) -> None:
        for name, text in info.options.items():
            if int(text) < self.last[name]:
                self.world.wrong(f"queue: {name} is {text} behind {self.last[name]}")
            self.last[name] = int(text)

    # ---- after

    def _records(self) -> list[Any]:
        """Keys alone, as there are thousands."""
        start, end = ProcedureKey.under()
        return list(self.world.kv._store.scan(start, end))

    async def _judge(self) -> None:
        if not await self._over("the queue", self._no_procedure):
            self.world.wrong(f"queue: {len(self._records())} procedures are left")
            return
        self._look()
        ends = dict(self._histories())
        accepted = {id: one for one in self.submitters for id in one.accepted}
        for procedure, submitter in accepted.items():
            self._judge_end(procedure, submitter, ends.get(procedure))
        self._judge_order([ends[id] for id in accepted if id in ends])
        for one in self.submitters:
            done = [v for id, v in one.accepted.items() if _is_done(ends.get(id))]
            if self.last[one.option] != max(done):
                self.world.wrong(f"queue: {one.option} is {self.last[one.option]}, not {max(done)}")

    def _judge_end(self, procedure: str, by: Submitter, end: ProcedureHistory | None) -> None:
        """Every one that was accepted has ended: as it was asked for, or cancelled."""
        if end is None:
            self.world.wrong(f"queue: {procedure} of {by.session.name} was accepted, and is lost")
        elif procedure in self.cancelled and end.outcome is not Ended.CANCELLED:
            self.world.wrong(f"queue: {procedure} was cancelled, and is {end.outcome}")
        elif end.outcome is Ended.CANCELLED:
            return
        elif end.outcome is not Ended.SUCCEEDED:
            self.world.wrong(f"queue: {procedure} ended: {end.outcome} {end.last.error}")

    def _judge_order(self, ends: list[ProcedureHistory]) -> None:
        done = sorted((one for one in ends if _is_done(one)), key=lambda one: one.last.submission)
        versions = [one.catalog_version or 0 for one in done]
        if versions != sorted(versions):
            self.world.wrong("queue: changes of one table were made in another order than asked")

    def _histories(self) -> Iterator[tuple[str, ProcedureHistory]]:
        start, end = ProcedureHistoryKey.under()
        for item in self.world.kv._store.scan(start, end):
            key = ProcedureHistoryKey.parse(item.key)
            yield key.procedure, decode(ProcedureHistory, item.value, key=item.key.decode())


def _is_done(end: ProcedureHistory | None) -> bool:
    return end is not None and end.outcome is Ended.SUCCEEDED
