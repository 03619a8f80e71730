"""Addresses of nodes in orders to regions with copies, and in answers to heartbeats."""

from collections.abc import Mapping
from itertools import count

from keys.commit.txn import Txn
from keys.model.cluster import Removal
from keys.model.log import TableCreated
from keys.model.tables import CopyRole, RegionCopy
from metasrv.nodes.copy_addresses import with_addresses
from metasrv_base.address_book import AddressBook
from metasrv_base.wire.node.orders import OpenRegion
from procedures.steps.region_orders import told_copies
from tests.keys.commit.changes import told
from tests.keys.model.copied_routes import COPIED
from tests.metasrv.nodes.leader import beat, office, registration
from tests.metasrv.nodes.samples import info, route

ADDRESSES = {"dn-1": "http://dn-1", "dn-3": "http://dn-3"}


def test_given_an_order_with_copies_when_sent_then_each_registered_node_has_its_address() -> None:
    copies = with_addresses(told_copies(info(), COPIED), ADDRESSES.get)

    addresses = [(copy.node, copy.address) for copy in copies.members]
    assert addresses == [("dn-1", "http://dn-1"), ("dn-2", None), ("dn-3", "http://dn-3")]


async def test_given_a_leader_without_its_region_when_it_beats_then_it_is_told_of_all_copies() -> (
    None
):
    async with office() as one:
        await one.book.register(registration())
        await one.book.register(registration("dn-2"))
        copy = RegionCopy(node="dn-2", root="/dn-2/a", role=CopyRole.IN_SYNC)
        made = told(
            Txn(), TableCreated(info=info(), route=route("dn-1", copies=(copy,), copies_version=1))
        )
        await one.committer.commit(made)

        (order,) = one.book.heartbeat(beat(1)).instructions

    assert isinstance(order, OpenRegion)
    assert order.copies is not None
    addresses = [copy.address for copy in order.copies.members]
    assert addresses == ["http://dn-1", "http://dn-2"]


async def test_given_a_node_with_other_addresses_when_it_beats_then_it_is_told_all_of_them() -> (
    None
):
    async with office() as one:
        await one.book.register(registration())
        await one.book.register(registration("dn-2"))
        book, sequence = AddressBook(), count(1)

        def beats(digest: str | None) -> Mapping[str, str] | None:
            sent = beat(next(sequence)).model_copy(update={"addresses_digest": digest})
            return one.book.heartbeat(sent).addresses

        assert beats(None) is None, "it has no copies"
        first = beats(book.digest)
        assert first == {"dn-1": "http://dn-1", "dn-2": "http://dn-2"}
        book.replace(first)
        assert beats(book.digest) is None
        await one.book.register(registration("dn-2", "i-2", address="http://moved"))
        assert beats(book.digest) == {"dn-1": "http://dn-1", "dn-2": "http://moved"}
        removal = Removal(at_ms=1, by="anna", reason="sold", lost=True)
        await one.book.remove("dn-2", removal)
        assert beats(book.digest) == {"dn-1": "http://dn-1"}
