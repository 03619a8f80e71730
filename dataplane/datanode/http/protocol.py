"""The contract of each call of the node protocol: its fence, its repeats, its errors. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from dataplane.datanode.answers import NodeRegions, RegionBody
from metasrv_base.wire.node.adoption import (
    AdoptAnswer,
    AdoptRequest,
    FoundRoot,
    Inventory,
    QuarantinedRoot,
)
from metasrv_base.wire.node.appends import AppendAnswer
from metasrv_base.wire.node.batches import (
    BatchHeader,
    BatchResult,
    ChecksumRequest,
    ChecksumResult,
    GetRows,
    Rows,
    ScanRows,
)
from metasrv_base.wire.node.copy_sessions import CopySession, CopySessionRequest
from metasrv_base.wire.node.inputs import Borrowed, Snapshot
from metasrv_base.wire.node.orders import (
    AdoptFiles,
    CloseRegion,
    CreateRegion,
    DeleteQuarantined,
    DiscardRoot,
    DropRegion,
    IngestFiles,
    OpenRegion,
    OrderRequest,
    OrderResponse,
    OrderSender,
    QuarantineRoot,
    SetSchema,
)
from metasrv_base.wire.node.promises import PromiseAnswer, PromiseRequest, RefusedPromise
from metasrv_base.wire.node.silences import LeaderHeard

BOUNDS = ("bad-path", "headers-too-large", "invalid-request", "request-timeout")
JSON = (*BOUNDS, "malformed-json", "unsupported-media-type", "body-too-large")
ROUTED = ("not-found", "table-not-found", "stale-epoch", "schema-version-stale")
SERVED = ("not-ready", "region-lost")


@dataclass(frozen=True, slots=True)
class ProtocolCall:
    """`takes`: models of the request, in the order in which they are explained."""

    takes: tuple[type[BaseModel], ...]
    gives: type[BaseModel] | None
    """The model of the answer; None: it has no JSON."""
    repeats: str
    fence: str
    errors: tuple[str, ...]


READ_REPEATS = "Changes nothing; repeat it freely."
READ_FENCE = (
    "The header's epoch must be the region's, and its schema version not below the floor; the "
    "lease, or in a region with copies the promises, is checked again after the rows were computed."
)
LOOK = "None: it shows the state of this process, and decides nothing."

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
            QuarantineRoot,
            DeleteQuarantined,
        ),
        OrderResponse,
        "A repeat of the last order of a region, by (term, number), gets the stored answer, also "
        "after a restart. An order that failed with 503 was not executed and is tried again.",
        "A request of a term below the highest seen is refused (409 `stale-epoch`). An order "
        "with a number below the last executed of its region is not done, and its result says "
        "`outcome-unknown`; one with an epoch below that at which the region is open is refused "
        "in its result. Term and tombstones are on disk before "
        "the first effect, results before the answer. A `schema` order raises the floor at the "
        "point where the region orders batches; the fence on disk is checked before its answer.",
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
        "A statement id that the region has applied gets its first result, whatever the body is, "
        "here and at the next leader.",
        "The region's epoch and its lease are checked before the batch is ordered; after the sync, "
        "the fence on disk and the lease again, before the answer. In a region with copies, the "
        "promises of the copies take the place of the lease, and the answer waits until every copy "
        "of the set has the batch durably. 504: written, but not acknowledged: another leader, the "
        "end of the lease or too few copies prevented it. The same statement sent again gets its "
        "result.",
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
    "POST /node/v1/copies/append": ProtocolCall(
        (),
        AppendAnswer,
        "Records that a copy already has are skipped, by their positions, so a request may be sent "
        "again unchanged, or with further records.",
        "The epoch of each leader: a copy that follows a higher one refuses its part (409 "
        "`stale-epoch`). A part names the root that it is meant for: another disk of the node is "
        "another copy (404). The copy cuts its log back before it follows a new epoch, and checks "
        "the fence on its disk before it answers.",
        (*BOUNDS, "body-too-large", "not-ready"),
    ),
    "POST /node/v1/regions/{region_id}/get": ProtocolCall(
        (GetRows,), Rows, READ_REPEATS, READ_FENCE, (*JSON, *ROUTED, *SERVED)
    ),
    "POST /node/v1/regions/{region_id}/scan": ProtocolCall(
        (ScanRows,),
        Rows,
        READ_REPEATS,
        READ_FENCE + " A stream is cut when the lease ends: its end is missing. "
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
        "A repeat writes the rows that came since.",
        "The fence on disk is checked after the manifest is written and before the log is cut.",
        (*BOUNDS, "not-found", "stale-epoch", *SERVED, "storage-full"),
    ),
    "POST /node/v1/adopt": ProtocolCall(
        (AdoptRequest,),
        AdoptAnswer,
        "A node that has left the old cluster for the new one gives its first answer again.",
        "The cluster in the node's journal, which is on disk before the answer. After it, orders "
        "of the old cluster are refused (409 `wrong-cluster`), and terms begin anew. The node's "
        "regions are closed, so no lease of the old cluster counts; files stay as they are.",
        (*JSON, "wrong-cluster", "storage-full"),
    ),
    "POST /node/v1/copies/promises": ProtocolCall(
        (PromiseRequest, RefusedPromise),
        PromiseAnswer,
        "A repeat gives new promises, from the time of its answer.",
        "The epoch that the copy has followed or leads, and the root of the copy, for each region. "
        "A copy that is ordered to lead gives no more promises, and waits until those that it gave "
        "have ended. Promises are kept in memory only: a node that starts waits as if it had "
        "promised at its start.",
        (*JSON, "wrong-cluster"),
    ),
    "POST /node/v1/copies/sessions": ProtocolCall(
        (CopySessionRequest,),
        CopySession,
        "A repeat begins another session. A node has at most 8; each ends when it is not used for "
        "30 s, 1 h after it began, and with the process.",
        "The epoch at which this node leads the region, and its root. The manifest is the newest "
        "of the leader: its files have only records that every copy of the set has.",
        (*JSON, "wrong-cluster", "stale-epoch", "not-found", *SERVED, "storage-full"),
    ),
    "GET /node/v1/copies/files": ProtocolCall(
        (),
        None,
        READ_REPEATS + " A session that has ended is 404: begin another.",
        "None: files are immutable, and are compared with the checksums of the manifest.",
        (*BOUNDS, "not-found", "not-ready"),
    ),
    "DELETE /node/v1/copies/sessions": ProtocolCall(
        (), None, "A session that has ended is none.", LOOK, BOUNDS
    ),
    "GET /node/v1/copies/heard": ProtocolCall((), LeaderHeard, READ_REPEATS, LOOK, BOUNDS),
    "GET /node/v1/inventory": ProtocolCall(
        (FoundRoot, QuarantinedRoot), Inventory, READ_REPEATS, LOOK, BOUNDS
    ),
    "GET /node/v1/regions": ProtocolCall((), NodeRegions, READ_REPEATS, LOOK, BOUNDS),
    "GET /node/v1/regions/{region_id}": ProtocolCall(
        (), RegionBody, READ_REPEATS, LOOK, (*BOUNDS, "not-found")
    ),
    "GET /node/v1/regions/{region_id}/borrowed": ProtocolCall(
        (),
        Borrowed,
        READ_REPEATS + " The list stays the same until it is adopted.",
        "None: inputs are immutable; the output of a job is adopted by an order or ignored.",
        (*BOUNDS, "not-found", *SERVED),
    ),
    "GET /node/v1/regions/{region_id}/snapshot": ProtocolCall(
        (),
        Snapshot,
        "A repeat may list other files, with the same rows as of the mark.",
        "The fence on disk is checked if rows are flushed. The files stay while the mark is open "
        "and the region is served here; a reader that does not find one asks again.",
        (*BOUNDS, "not-found", "stale-epoch", *SERVED, "storage-full"),
    ),
}
