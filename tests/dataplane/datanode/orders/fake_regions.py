"""Regions that note the orders they are given, and answer as a test says."""

import asyncio
from dataclasses import dataclass, field

from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.region.disk.memory_disk import MemoryStore
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.orders import Order


@dataclass
class FakeRegions:
    """Notes what is carried out, and what the journal's file held at that moment."""

    store: MemoryStore
    fails_with: MetaError | None = None
    done: list[tuple[int, str]] = field(default_factory=list)
    durable: list[bytes] = field(default_factory=list)
    renewed: list[int] = field(default_factory=list)
    made_way: list[int] = field(default_factory=list)
    held: asyncio.Event | None = None

    async def carry_out(self, order: Order) -> None:
        if self.held is not None:
            await self.held.wait()
        self.done.append((order.number, order.op))
        self.durable.append(journal_bytes(self.store))
        if self.fails_with is not None:
            raise self.fails_with

    def renew_by(self, order: Order) -> None:
        self.renewed.append(order.number)

    def make_way(self, order: Order) -> None:
        self.made_way.append(order.number)


async def told_of_term(desk: OrderExecutor, term: int = 1) -> OrderExecutor:
    await desk.hear_term(term)
    return desk


def journal_bytes(store: MemoryStore) -> bytes:
    """The bytes of the journal that would survive a crash now."""
    return b"".join(
        bytes(inode.data[: inode.synced])
        for path, inode in store.durable.items()
        if path.startswith("/n/node/journal-")
    )
