"""A sample of each key of a change that is too large for one transaction; golden files hold them
too."""

from typing import Any

from keys.key import Key
from keys.model.catalogs import SchemaInfo
from keys.model.log import SchemaCreated, StagedRef
from keys.model.staging.parts import BatchPart, BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.value import StoredModel

AT_MS = 1_763_721_600_000
BATCH = "019aa5d3-1c00-7abc-8def-0123456789ab.17.1"
REF = StagedRef(batch=BATCH, parts=2, size_bytes=31_000, digest="0123456789abcdef" * 4)
SCHEMA = SchemaInfo(schema_id=1, catalog="main", name="public", created_at_ms=AT_MS)
PART = BatchPart(
    batch=BATCH,
    part=1,
    entries=(SchemaCreated(info=SCHEMA),),
    members=({"member": "miss", "kind": "drop_table", "name": "main.public.x", "id": None},),
)
LARGE = LargeUpdate(version=17, staged=REF, keys=9_000, copied=126)

STAGED_SAMPLES: tuple[tuple[Key[Any], StoredModel], ...] = (
    (BatchPartKey(BATCH, 1), PART),
    (LargeUpdateKey(17), LARGE),
)
