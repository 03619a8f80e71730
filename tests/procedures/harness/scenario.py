"""One life of a kind, to be crashed anywhere: what is there, what is asked, how it may end."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from keys.commit.staging import StagingSizes
from keys.model.records import ClientRequirements, ProcedureOutcome
from keys.store.kv import Compare
from procedures.machine import ProcedureState
from procedures.ports import TransactionLimits
from tests.fakes.cluster import Cluster
from tests.procedures.harness.ends import Check, nothing

DIGEST = "ab" * 32
FULL = ProcedureOutcome.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    kind: str
    state: ProcedureState
    given: Callable[[Cluster, Compare], Awaitable[None]]
    ends: Mapping[ProcedureOutcome, Check]
    """The legal ends, each with what must then be true."""
    client: Mapping[str, object] | None = None
    cancel_after_ms: int | None = None
    """The client asks for the procedure to be cancelled then."""
    deadline_ms: int | None = None
    """Deadline instead of that of the kind, which would make a long life of retries."""
    dead_holder: bool = False
    """A holder that used the table has just died: its schema lease is waited for once."""
    one_transaction: TransactionLimits = field(default_factory=TransactionLimits)
    """The size from which a batch happens in parts."""
    sizes: StagingSizes = field(default_factory=StagingSizes)
    awaits_heartbeats: bool = False
    """The end is judged behind two more heartbeats of each node: their answers tell copies what an
    order that was lost had told them."""
    undone: Check = nothing
    """Checks the other end that is legal where a store or a node refuses it."""


def submission(scenario: Scenario) -> ClientRequirements:
    required = dict(scenario.client or {})
    statement = {"method": "POST", "path": "/v1/x", "body": {}}
    base = ClientRequirements(
        submitted_by="anna", request_id="r-1", statement=statement, idempotency=DIGEST
    )
    return base.model_copy(update=required)
