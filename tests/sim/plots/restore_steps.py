"""Steps of an operator who backs a cluster up and restores it, and of its clients."""

from collections.abc import Sequence

from keys.store.kv import Event, Request, TxnAnswer
from metasrv.adapters.http_adoption import HttpAdoption
from metasrv.restore.found_regions import FoundRegions
from metasrv.restore.inventory_pages import InventoryReader
from metasrv.sdk.control.backups import Backups
from metasrv.sdk.control.tables import Indexes
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.errors import MetaError
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.orders import CloseRegion, OrderRequest
from tests.procedures.harness.agree import Agreement
from tests.sim.clients.client import Session, pursued
from tests.sim.cluster.net import Network, Wire
from tests.sim.cluster.nodes import Datanode

AGAIN_MS = 700
TERM = 1 << 40
"""Above every term that there was."""
ORDER_MS = 5_000


class NoAgreement(Agreement):
    """A restore writes keys in its own order; `metasrv check` judges what they are in the end."""

    def move(self, revision: int, events: Sequence[Event]) -> None:  # type: ignore[override]
        """Judges nothing."""


class Unfenced:
    """Implements tests.sim.cluster.store.Ghost: a restore has no seat, it compares its mark."""

    def applied(self, host: str, request: Request, answer: TxnAnswer) -> None:
        """Judges nothing."""

    def told_nothing(self, host: str, request: Request) -> None:
        """Judges nothing."""


def cluster_of(backup: bytes) -> str:
    """The id of the cluster that was backed up."""
    reader = BackupReader()
    for _ in reader.feed(backup):
        pass
    assert reader.header is not None, "it is whole"
    return reader.header.cluster_id


async def backed_up(session: Session) -> bytes:
    """A whole backup, however often it takes."""
    while True:
        backups, reader, parts = Backups(session.http, Wire(session.network)), BackupReader(), []
        try:
            async for part in backups.download():
                parts.append(part)
                for _ in reader.feed(part):
                    pass
            reader.close()
        except MetaError as error:
            session.count(f"a backup failed: {error.code}")
            await session.clock.sleep_ms(AGAIN_MS)
        else:
            return b"".join(parts)


async def inventories_of(session: Session, nodes: Sequence[Datanode], cluster: str) -> FoundRegions:
    """The disks of all nodes, however often it takes."""
    adoption = HttpAdoption(Wire(session.network))
    while True:
        reader = InventoryReader(cluster)
        try:
            for node in nodes:
                pages = reader.begin(node.url)
                while pages.following is not None:
                    first = int(pages.following)
                    pages.take(await adoption.inventory(node.url, first, INT64_END - 1))
                pages.close()
        except MetaError:
            await session.clock.sleep_ms(AGAIN_MS)
        else:
            return reader.inventories


async def give_numbers(session: Session, table_id: int, tag: str) -> None:
    """A column, an index and a constraint more of a table, each of which may be refused."""
    try:
        name = (await session.tables.get_by_id(table_id)).name
    except MetaError as error:
        session.count(f"refused: {error.code}")
        return
    tables, indexes = session.tables, Indexes(session.service)
    column = {"op": "add_column", "column": {"name": f"x{tag}", "type": "int64"}}
    check = {"op": "add_constraint", "name": f"k{tag}", "check": f"x{tag} <> 7"}
    index = {"name": f"i{tag}", "columns": ["v"]}
    await pursued(session, lambda key: tables.alter(name, [column], idempotency_key=key))
    await pursued(session, lambda key: tables.alter(name, [check], idempotency_key=key))
    await pursued(session, lambda key: indexes.create(name, index, idempotency_key=key))


async def order_of_lost(network: Network, node: Datanode, cluster: str, region: str) -> str:
    """The answer of a node to an order of the lost cluster, which leads by a high term: the code of
    an error, or `obeys`."""
    request = OrderRequest(
        cluster_id=cluster,
        node_id=node.name,
        term=TERM,
        orders=[CloseRegion(number=1, region_id=region, epoch=TERM)],
    )
    client = HttpClient([node.url], transport=Wire(network))
    try:
        await client.request("POST", "/node/v1/orders", json=request, deadline_ms=ORDER_MS)
    except MetaError as error:
        return error.code
    return "obeys"
