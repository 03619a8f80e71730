"""The ports of one server, wrapped: every call is named by the code that makes it, and may fail."""

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from keys.model.records import ProcedureKey
from keys.store.kv import Get, KeyPage, Kv, LeaseId, Put, Request, TxnAnswer, Watched
from metasrv_base.errors import Unknown
from metasrv_base.wire.node.adoption import Inventory
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.node.orders import Order, OrderRequest, OrderResult, OrderSender
from procedures.ports import Jobs, NodeOrders, Progress, Sender
from tests.fakes.faults import Call, Fate, Plan, through
from tests.fakes.wire import NodeWire, Sent

ROOT = f"{Path(__file__).parents[2]}/"
OURS = ("procedures", "keys")


class Witness(Protocol):
    """Sees what one server writes; the world's, not the server's."""

    def is_full(self) -> bool:
        """Whether the store takes no puts."""
        ...

    def answered(self, request: Request, answer: TxnAnswer) -> None: ...

    def told_nothing(self, request: Request) -> None:
        """The server does not know what became of *request*."""
        ...


def site() -> tuple[str, ...]:
    """The functions of ours that are running, innermost first, without the ports themselves."""
    names, frame = [], sys._getframe(2)
    while frame is not None:
        if module := _module(frame.f_code.co_filename):
            names.append(f"{module}:{frame.f_code.co_name}")
        parent = frame.f_back
        if parent is None:
            break
        frame = parent
    return tuple(names)


@cache
def _module(path: str) -> str:
    """Returns the name of a module of ours, below its package; empty for any other."""
    package, _, inner = path.removeprefix(ROOT).partition("/")
    return inner.removesuffix(".py") if package in OURS else ""


@dataclass(slots=True)
class FaultyKv:
    """The store of one server. `fence` is its term: what it writes is checked against it."""

    kv: Kv
    plan: Plan
    fate: Fate
    witness: Witness
    held: Callable[[bytes], bytes | None]
    """Returns the stored value of a key that is about to be written."""
    alter: Callable[[Request], Request] = lambda request: request
    """A planted bug: what is sent instead."""

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        sent = self.alter(request)

        async def work() -> TxnAnswer:
            if self.witness.is_full() and any(isinstance(write, Put) for write in sent.writes):
                raise Unknown(reason="no-space")
            answer = await self.kv.txn(sent, deadline_ms=deadline_ms)
            self.witness.answered(sent, answer)
            return answer

        call = Call("kv.txn", site(), bool(request.writes), "; ".join(self._steps_of(request)))
        try:
            return await through(self.plan, self.fate, call, work)
        except Unknown:
            self.witness.told_nothing(sent)
            raise

    def _steps_of(self, request: Request) -> Iterator[str]:
        """Yields the kind and step of every record that the batch moves."""
        start, end = ProcedureKey.under()
        for write in request.writes:
            held = self.held(write.key) if start <= write.key < end else None
            if held is not None:
                record = json.loads(held)
                undo = "undo " if record["phase"] == "undo" else ""
                yield f"{record['kind']}: {undo}{record['step']}"

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        call = Call("kv.range", site(), False)
        return await through(
            self.plan,
            self.fate,
            call,
            lambda: self.kv.range(get, deadline_ms=deadline_ms, revision=revision),
        )

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        return self.kv.watch(key, end, start_revision=start_revision)

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        return await self.kv.grant(ttl_ms, deadline_ms=deadline_ms)

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        return await self.kv.keep_alive(lease, deadline_ms=deadline_ms)

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        await self.kv.revoke(lease, deadline_ms=deadline_ms)

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        await self.kv.compact(revision, deadline_ms=deadline_ms)

    async def close(self) -> None:
        await self.kv.close()


@dataclass(slots=True)
class FaultyNodes:
    """Counts the calls; what happens to one happens to its request, on the wire."""

    nodes: NodeOrders
    plan: Plan
    wire: NodeWire

    async def send(
        self, node: str, orders: Sequence[Order], *, sender: Sender
    ) -> tuple[OrderResult, ...]:
        first, by = orders[0], OrderSender(procedure=sender.procedure, step=sender.step)

        def bears(sent: Sent) -> bool:
            if (sent.node, sent.method) != (node, "POST"):
                return False
            carried = OrderRequest.model_validate_json(sent.body).orders
            known = {(one.op, one.region_id, one.sender) for one in carried}
            return (first.op, first.region_id, by) in known

        self._look_at(Call(f"nodes.send {first.op}", site(), True), bears)
        return await self.nodes.send(node, orders, sender=sender)

    async def borrowed(self, node: str, region_id: str) -> Borrowed:
        end = f"/{region_id}/borrowed"
        call = Call("nodes.borrowed", site(), False)
        self._look_at(call, lambda sent: sent.node == node and sent.target.endswith(end))
        return await self.nodes.borrowed(node, region_id)

    async def snapshot(
        self, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        part = f"/{region_id}/snapshot?"
        call = Call("nodes.snapshot", site(), False)
        self._look_at(call, lambda sent: sent.node == node and part in sent.target)
        return await self.nodes.snapshot(node, region_id, mark, whole=whole)

    async def fetched(self, node: str, region_id: str) -> FetchBody | None:
        end = f"/node/v1/regions/{region_id}"
        call = Call("nodes.fetched", site(), False)
        self._look_at(call, lambda sent: sent.node == node and sent.target.endswith(end))
        return await self.nodes.fetched(node, region_id)

    async def inventory(self, node: str, region_id: int) -> Inventory:
        part = f"/inventory?first={region_id}&"
        call = Call("nodes.inventory", site(), False)
        self._look_at(call, lambda sent: sent.node == node and part in sent.target)
        return await self.nodes.inventory(node, region_id)

    def _look_at(self, call: Call, is_it: Callable[[Sent], bool]) -> None:
        if self.plan.meets(call):
            self.wire.strike(call, is_it)


@dataclass(slots=True)
class FaultyJobs:
    jobs: Jobs
    plan: Plan
    fate: Fate

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        call = Call("jobs.move", site(), True)
        return await through(
            self.plan, self.fate, call, lambda: self.jobs.move(job, progress=progress)
        )

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        call = Call("jobs.backfill", site(), True)
        return await through(
            self.plan, self.fate, call, lambda: self.jobs.backfill(job, progress=progress)
        )

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        call = Call("jobs.validate", site(), False)
        return await through(
            self.plan, self.fate, call, lambda: self.jobs.validate(job, progress=progress)
        )

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        call = Call("jobs.check", site(), False)
        return await through(
            self.plan, self.fate, call, lambda: self.jobs.check(job, progress=progress)
        )

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        call = Call("jobs.load", site(), True)
        return await through(
            self.plan, self.fate, call, lambda: self.jobs.load(job, progress=progress)
        )

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        await self.jobs.throttle(job_id, rows_per_s)
