"""Counts of folders in quarantine on all nodes, as the leader last listed them."""

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(slots=True)
class QuarantinedFolders:
    _by_node: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Folders and bytes."""

    def take(self, node: str, folders: int, size_bytes: int) -> None:
        self._by_node[node] = (folders, size_bytes)

    def keep(self, nodes: Collection[str]) -> None:
        """Forgets all other nodes."""
        self._by_node = {node: self._by_node[node] for node in nodes if node in self._by_node}

    @property
    def folders(self) -> int:
        return sum(folders for folders, _ in self._by_node.values())

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size in self._by_node.values())
