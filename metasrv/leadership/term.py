"""Everything that exists only while this server leads: made at election, gone with the term."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from keys.commit.committer import Committer
from keys.commit.sequence import Sequences
from keys.store.kv import Compare
from metasrv.holders.sync import HolderSync
from metasrv.leadership.tally import Tally
from metasrv.nodes.book import NodeBook
from metasrv.settings.settings import Settings
from procedures.context import Ports
from procedures.scheduling.manager import Manager


@dataclass(frozen=True, slots=True)
class Term:
    """One term of this server."""

    cluster_id: str
    fence: Compare
    committer: Committer
    sequences: Sequences
    manager: Manager
    ports: Ports
    nodes: NodeBook
    holders: HolderSync
    settings: Settings
    tally: Tally
    ready: asyncio.Event
    """Set once every record has been read and its locks computed; nothing is admitted before."""
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """What adapters of this term need to run while it lasts."""

    @property
    def number(self) -> int:
        return self.fence.mod_revision
