"""What a client has seen of a table at one frontend is there at every other (P7)."""

import asyncio

from dataplane.frontend.catalog.catalog import LiveCatalog, Name
from metasrv_base.errors import NotFound, Unavailable

CATCH_UP_S_MAX = 2.0
"""A healthy frontend is behind for milliseconds; a client of one that is not goes to another."""


async def reached(catalog: LiveCatalog, name: Name, schema_version: int) -> None:
    """Once the table is known at *schema_version*, or at none any more. Raises Unavailable if that
    takes too long."""
    try:
        known = catalog.named(name)
        async with asyncio.timeout(CATCH_UP_S_MAX):
            while known.version < schema_version:
                known = await catalog.newer(known)
    except NotFound:
        return
    except TimeoutError as error:
        facts = {"what": "the catalog of this frontend", "version": known.version}
        raise Unavailable("not-ready", wanted=schema_version, **facts) from error
