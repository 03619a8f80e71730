"""Addresses of a region's copies in an order: the leader knows those of registered nodes."""

from collections.abc import Callable

from metasrv_base.wire.node.copies import RegionCopies


def with_addresses(copies: RegionCopies, address_of: Callable[[str], str | None]) -> RegionCopies:
    """*copies* with the address of each. *address_of*: the URL of a node; None: it is not
    registered."""
    members = [
        copy.model_copy(update={"address": address_of(copy.node)}) for copy in copies.members
    ]
    return copies.model_copy(update={"members": members})
