"""The head of the catalog log when a term begins: read in a transaction that carries the fence."""

import asyncio

from keys.commit.batch import LogHead
from keys.model.log import CatalogVersion, CatalogVersionKey
from keys.model.records import ProcedureKey
from keys.model.salvage import number_in
from keys.store.kv import Compare, Get, Kv, Request
from keys.store.scan import pages
from keys.value import decode
from metasrv_base.errors import Corrupt, NotLeader

SLICE = Get(b"", limit=250)  # records in one page; of each only a number is read


async def read_log_head(kv: Kv, fence: Compare, *, deadline_ms: int) -> LogHead:
    """Raises NotLeader if *fence* is lost, Corrupt if the prefix was never bootstrapped.

    Submission numbers go on above those of every living procedure, and above the term itself, so
    that they rise from term to term too.
    """
    key = CatalogVersionKey()
    request = Request(compares=(fence,), reads=(Get(bytes(key)),))
    answer = await kv.txn(request, deadline_ms=deadline_ms)
    if not answer.succeeded:
        raise NotLeader(term=fence.mod_revision)
    if not answer.ranges[0]:
        raise Corrupt(key=str(key), reason="missing")
    item = answer.ranges[0][0]
    version = decode(CatalogVersion, item.value, key=str(key))
    submission, records = fence.mod_revision, ProcedureKey.under()
    async for page in pages(
        kv, records, deadline_ms=deadline_ms, revision=answer.revision, like=SLICE
    ):
        for record in page.items:
            submission = max(submission, number_in(record.value))
        await asyncio.sleep(0)  # whoever else has work goes between two pages
    return LogHead(
        fence=fence,
        version=version.version,
        version_revision=item.mod_revision,
        at_ms=version.at_ms,
        submission=submission,
    )
