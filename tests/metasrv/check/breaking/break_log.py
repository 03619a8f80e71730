"""Raw puts that break one rule about the catalog log or about procedures."""

from keys.model.log import CatalogUpdateKey, CatalogVersionKey, SchemaDropped
from keys.model.records import (
    Idempotency,
    IdempotencyKey,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    TimelineEntry,
)
from keys.model.tables import DatanodeTableKey, TableInfoKey
from tests.keys.model.samples import CHILD, DIGEST, PROCEDURE, SAMPLES
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import FLIGHTS, Cluster

LIVING = ProcedureKey(CHILD)
OTHER = ProcedureKey("019aa5d3-1c02-7abc-8def-0123456789ab")
NOBODY = "019aa5d3-ffff-7abc-8def-0123456789ab"


async def gap(at: Cluster) -> str:
    await at.delete(CatalogUpdateKey(3))
    return str(CatalogUpdateKey(3))


async def lost_version(at: Cluster) -> str:
    await at.delete(CatalogVersionKey())
    return str(CatalogVersionKey())


async def version_ahead(at: Cluster) -> str:
    version = (await at.read(CatalogVersionKey())).version
    return await at.edit(CatalogVersionKey(), version=version + 1)


async def time_goes_back(at: Cluster) -> str:
    return await at.edit(CatalogUpdateKey(4), at_ms=1)


async def version_at_another_time(at: Cluster) -> str:
    return await at.edit(CatalogVersionKey(), at_ms=1)


async def impossible_entry(at: Cluster) -> str:
    gone = SchemaDropped(catalog="main", name="never_there")
    return await at.edit(CatalogUpdateKey(4), entries=(gone,))


async def value_the_log_never_told(at: Cluster) -> str:
    return await at.edit(TableInfoKey(FLIGHTS), options={"retention": "1d"})


async def rewritten_update(at: Cluster) -> str:
    return await at.edit(CatalogUpdateKey(2))


async def value_put_again(at: Cluster) -> str:
    return await at.edit(TableInfoKey(FLIGHTS))


async def reverse_put_again(at: Cluster) -> str:
    return await at.edit(DatanodeTableKey("dn-1", FLIGHTS))


async def unknown_kind(at: Cluster) -> str:
    return await at.edit(LIVING, kind="terraform_table")


async def newer_kind(at: Cluster) -> str:
    return await at.edit(LIVING, kind_format=9)


async def step_of_no_kind(at: Cluster) -> str:
    return await at.edit(LIVING, step="dance")


async def state_of_no_kind(at: Cluster) -> str:
    return await at.edit(LIVING, state={"infos": 1})


async def one_number_twice(at: Cluster) -> set[str]:
    record = (await at.read(LIVING)).model_copy(update={"locks": ()})
    await at.put(OTHER, record)
    return {str(LIVING), str(OTHER)}


async def ran_without_its_lock(at: Cluster) -> str:
    """Submitted later, for the same schema, and yet it has committed a step."""
    record = await at.read(LIVING)
    beats = (TimelineEntry(step="create", at_ms=1, ms=1),)
    later = {"submission": record.submission + 1, "timeline": beats, "overtakes": ()}
    await at.put(OTHER, record.model_copy(update=later))
    return str(OTHER)


async def orphan_child(at: Cluster) -> str:
    return await at.edit(LIVING, parent=NOBODY)


async def over_and_alive(at: Cluster) -> str:
    history = next(value for _, value in SAMPLES if isinstance(value, ProcedureHistory))
    await at.put(ProcedureHistoryKey(CHILD), history)
    return str(LIVING)


async def key_to_nowhere(at: Cluster) -> str:
    value = Idempotency(procedure=NOBODY, fingerprint=DIGEST, at_ms=1)
    await at.put(IdempotencyKey(DIGEST), value)
    return str(IdempotencyKey(DIGEST))


async def purged_history(at: Cluster) -> str:
    await at.delete(ProcedureHistoryKey(PROCEDURE))
    return str(IdempotencyKey(DIGEST))


BREAKAGES = (
    Breakage("log-dense", gap),
    Breakage("log-dense", lost_version),
    Breakage("log-dense", version_ahead),
    Breakage("log-times", time_goes_back),
    Breakage("log-times", version_at_another_time),
    Breakage("log-folds", impossible_entry),
    Breakage("log-tells", value_the_log_never_told),
    Breakage("log-once", rewritten_update),
    Breakage("log-together", value_put_again),
    Breakage("log-together", reverse_put_again),
    Breakage("procedure-parked", unknown_kind),
    Breakage("procedure-parked", newer_kind),
    Breakage("procedure-runnable", step_of_no_kind),
    Breakage("procedure-runnable", state_of_no_kind),
    Breakage("procedure-submission", one_number_twice),
    Breakage("procedure-locks", ran_without_its_lock),
    Breakage("procedure-parent", orphan_child),
    Breakage("procedure-once", over_and_alive),
    Breakage("idempotency-target", key_to_nowhere),
    Breakage("idempotency-target", purged_history),
)
