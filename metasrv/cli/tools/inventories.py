"""Inventories of nodes for a restore: asked of the nodes, or read from files of their answers."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metasrv.restore.found_regions import FoundRegions
    from metasrv.restore.inventory_pages import InventoryPages

LINE_BYTES_MAX = 64 << 20
"""One page: the folders of a thousand regions, with the roots that they borrow."""


def read_inventories(
    sources: Sequence[str], cluster_id: str, environment: Mapping[str, str] = os.environ
) -> "FoundRegions":
    """Reads inventories from *sources*: URLs of datanodes, and files with a page of an inventory on
    each line.

    Raises Refused `invalid-request` for one that is not whole or of another cluster, OSError, and
    what a node answers.
    """
    return asyncio.run(_read(sources, cluster_id, environment))


async def _read(
    sources: Sequence[str], cluster_id: str, environment: Mapping[str, str]
) -> "FoundRegions":
    from metasrv.restore.inventory_pages import InventoryReader

    reader = InventoryReader(cluster_id)
    for source in sources:
        pages = reader.begin(source)
        if "://" in source:
            await _asked(source, pages, environment)
        else:
            await asyncio.to_thread(_of_file, Path(source), pages)
        pages.close()
    return reader.inventories


async def _asked(url: str, pages: "InventoryPages", environment: Mapping[str, str]) -> None:
    from metasrv.adapters.http_adoption import HttpAdoption
    from metasrv.cli.environment import token_of
    from metasrv_base.token import OwnToken
    from metasrv_base.wire.model import INT64_END

    node = HttpAdoption(token=OwnToken(token_of(environment)))
    while pages.following is not None:
        pages.take(await node.inventory(url, int(pages.following), INT64_END - 1))


def _of_file(path: Path, pages: "InventoryPages") -> None:
    with path.open("rb") as opened:
        while line := opened.readline(LINE_BYTES_MAX):
            if line.strip():
                pages.take_line(line)
