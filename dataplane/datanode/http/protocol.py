"""The contract of each call of the node protocol: its fence, its repeats, its errors. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from dataplane.datanode.answers import NodeRegions, RegionBody
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, FoundRoot, Inventory
from metasrv_base.wire.node.batches import (
    BatchHeader,
    BatchResult,
    ChecksumRequest,
    ChecksumResult,
    GetRows,
    Rows,
    ScanRows,
)
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import (
    AdoptFiles,
    CloseRegion,
    CreateRegion,
    DiscardRoot,
    DropRegion,
    IngestFiles,
    OpenRegion,
    OrderRequest,
    OrderResponse,
    OrderSender,
    SetSchema,
)

BOUNDS = ("bad-path", "headers-too-large", "invalid-request", "request-timeout")
JSON = (*BOUNDS, "malformed-json", "unsupported-media-type", "body-too-large")
ROUTED = ("not-found", "table-not-found", "stale-epoch", "schema-version-stale")
SERVED = ("not-ready", "region-lost")


@dataclass(frozen=True, slots=True)
class ProtocolCall:
    """`takes`: models of the request, in the order in which they are explained."""

    takes: tuple[type[BaseModel], ...]
    gives: type[BaseModel]
    repeats: str
    fence: str
    errors: tuple[str, ...]


READ_REPEATS = "Changes nothing; repeat it freely."
READ_FENCE = (
    "The header's epoch must be the region's, its schema version not below the floor; the lease "
    "is looked at once more after the rows were computed."
)
LOOK = "None: it shows what this process has, and decides nothing."

CALLS: Mapping[str, ProtocolCall] = {
    "POST /node/v1/orders": ProtocolCall(
        (
            OrderRequest,
            OrderSender,
            CreateRegion,
            OpenRegion,
            SetSchema,
            CloseRegion,
            DropRegion,
            AdoptFiles,
            IngestFiles,
            DiscardRoot,
        ),
        OrderResponse,
        "A repeat of the last order of a region, by (term, number), is given the stored answer, "
        "also after a restart. An order that failed with 503 was not executed and is tried again.",
        "A term below the highest seen refuses the request (409 `stale-epoch`); so does, in the "
        "result of one order, a number below the last executed of its region, or an epoch below "
        "the one it is open at. Term and tombstones are on disk before the first effect, results "
        "before the answer. A `schema` order raises the floor where the region orders batches, and "
        "looks at the fence on disk before it is answered.",
        (
            *JSON,
            "wrong-cluster",
            "stale-epoch",
            "action-not-allowed",
            "version-mismatch",
            *SERVED,
            "storage-full",
        ),
    ),
    "POST /node/v1/regions/{region_id}/batch": ProtocolCall(
        (BatchHeader,),
        BatchResult,
        "A statement id that the region has applied is given its first result, whatever the body "
        "then says, here and at the next leader.",
        "The region's epoch and its lease, looked at before the batch is ordered; after the sync "
        "the fence on disk and the lease once more, before the answer. 504: written, but another "
        "leader or the end of the lease came in between; the same statement sent again tells.",
        (
            *BOUNDS,
            "body-too-large",
            "limit-exceeded",
            *ROUTED,
            "already-exists",
            "version-mismatch",
            *SERVED,
            "storage-full",
            "outcome-unknown",
        ),
    ),
    "POST /node/v1/regions/{region_id}/get": ProtocolCall(
        (GetRows,), Rows, READ_REPEATS, READ_FENCE, (*JSON, *ROUTED, *SERVED)
    ),
    "POST /node/v1/regions/{region_id}/scan": ProtocolCall(
        (ScanRows,),
        Rows,
        READ_REPEATS,
        READ_FENCE + " A stream that was begun is cut when the lease ends: its end is missing. "
        "A JSON answer ends after 10,000 rows or 16 MiB and says `more`; an Arrow stream ends at "
        "`bytes_max`, and then its last record batch is without rows.",
        (*JSON, *ROUTED, *SERVED),
    ),
    "POST /node/v1/regions/{region_id}/checksum": ProtocolCall(
        (ChecksumRequest,), ChecksumResult, READ_REPEATS, READ_FENCE, (*JSON, *ROUTED, *SERVED)
    ),
    "POST /node/v1/regions/{region_id}/flush": ProtocolCall(
        (),
        RegionBody,
        "Done again, it writes what came since.",
        "The fence on disk, after the manifest and before the log is cut.",
        (*BOUNDS, "not-found", "stale-epoch", *SERVED, "storage-full"),
    ),
    "POST /node/v1/adopt": ProtocolCall(
        (AdoptRequest,),
        AdoptAnswer,
        "A node that has left the one cluster for the other is answered as it was then.",
        "The cluster that it belongs to, in its journal. On disk before the answer: orders of the "
        "old cluster are refused (409 `wrong-cluster`), and terms begin anew. Its regions are "
        "closed, so no lease of the old cluster counts; files stay as they are.",
        (*JSON, "wrong-cluster", "storage-full"),
    ),
    "GET /node/v1/inventory": ProtocolCall((FoundRoot,), Inventory, READ_REPEATS, LOOK, BOUNDS),
    "GET /node/v1/regions": ProtocolCall((), NodeRegions, READ_REPEATS, LOOK, BOUNDS),
    "GET /node/v1/regions/{region_id}": ProtocolCall(
        (), RegionBody, READ_REPEATS, LOOK, (*BOUNDS, "not-found")
    ),
    "GET /node/v1/regions/{region_id}/borrowed": ProtocolCall(
        (),
        Borrowed,
        READ_REPEATS + " The list stays the same until it is adopted.",
        "None: inputs are immutable; what a job makes of them is adopted by an order or ignored.",
        (*BOUNDS, "not-found", *SERVED),
    ),
    "GET /node/v1/regions/{region_id}/snapshot": ProtocolCall(
        (),
        Snapshot,
        "Done again, it may list other files, with the same rows as of the mark.",
        "The fence on disk, if rows are flushed. The files stay while the mark is open and the "
        "region is served here; a reader that misses one asks again.",
        (*BOUNDS, "not-found", "stale-epoch", *SERVED, "storage-full"),
    ),
}
