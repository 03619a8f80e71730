"""The pages of nodes' inventories, judged before they count: whole, and of the cluster. Pure."""

import json
from dataclasses import dataclass, field

from metasrv.restore.found_regions import FoundRegions
from metasrv_base.errors import Refused
from metasrv_base.wire.model import INT64_END
from metasrv_base.wire.node.adoption import INVENTORY_FORMAT, Inventory

FOLDERS_MAX = 1_000_000
"""Folders of all inventories: each takes some two kilobytes of memory."""
PAGES_MAX = 1_000_000
"""Pages of one inventory: a node that repeats itself is no endless source."""


@dataclass(slots=True)
class InventoryReader:
    """Takes one inventory after the other. Raises Refused `invalid-request`."""

    cluster_id: str
    """The cluster of the backup."""
    inventories: FoundRegions = field(default_factory=FoundRegions)

    def begin(self, source: str) -> "InventoryPages":
        """Begins the inventory of one node. *source* is its URL or file, for messages."""
        return InventoryPages(source, self)


@dataclass(slots=True)
class InventoryPages:
    """The pages of one node, in order: each begins where the one before it says."""

    source: str
    reader: InventoryReader
    following: str | None = "0"
    """The region with which the next page begins; None: there is none."""
    _node: str | None = None
    _pages: int = 0

    def take(self, page: Inventory) -> None:
        self._pages += 1
        if self._node is None and page.node_id in self.reader.inventories.nodes:
            raise self._unusable(f"there is another inventory of node {page.node_id}")
        if self._node not in (None, page.node_id):
            raise self._unusable(f"it is of node {self._node}, and then of {page.node_id}")
        if page.cluster_id != self.reader.cluster_id:
            reason = f"node {page.node_id} is of cluster {page.cluster_id}"
            raise self._unusable(f"{reason}, and the backup of {self.reader.cluster_id}")
        if self.following is None or page.first != self.following or self._pages > PAGES_MAX:
            raise self._unusable(f"a page begins at region {page.first}, not {self.following}")
        if page.next is None and page.last != LAST:
            raise self._unusable(f"it ends at region {page.last}")
        self._node, self.following = page.node_id, page.next
        self.reader.inventories.take(page)
        if self.reader.inventories.folders > FOLDERS_MAX:
            raise self._unusable(f"there are more than {FOLDERS_MAX} folders")

    def take_line(self, line: bytes) -> None:
        """A page as a node has answered it."""
        try:
            document = json.loads(line)
            written = document.get("format") if isinstance(document, dict) else None
            if isinstance(written, int) and written > INVENTORY_FORMAT:
                raise self._unusable("it was written by a newer datanode")
            page = Inventory.model_validate_json(line)
        except (ValueError, RecursionError) as error:
            raise self._unusable("it is no inventory, or cut") from error
        self.take(page)

    def close(self) -> None:
        """All pages were taken."""
        if self._node is None:
            raise self._unusable("it is empty")
        if self.following is not None:
            raise self._unusable(f"the page from region {self.following} on is missing")

    def _unusable(self, reason: str) -> Refused:
        return Refused("invalid-request", reason=f"inventory {self.source}: {reason}")


LAST = str(INT64_END - 1)
