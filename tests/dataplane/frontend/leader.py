"""The leader as a holder sees it, in memory: what it was told, and what it answers."""

from dataclasses import dataclass, field

from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, MetaError
from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
)

LEASE_MS = 15_000
ACKNOWLEDGE_MS = 3_000
AGE_MAX_MS = 10_000


@dataclass
class FakeLeader:
    clock: Clock
    version: int = 1
    """Version of its catalog."""
    fault: MetaError | None = None
    """Raised instead of any answer."""
    incarnation: str | None = None
    """The one it knows; None: whichever it is told of."""
    registrations: list[HolderRegisterRequest] = field(default_factory=list)
    acknowledgements: list[tuple[int, AcknowledgeRequest]] = field(default_factory=list)
    """With the time of each."""
    signed_off: list[str] = field(default_factory=list)

    async def register(
        self, request: HolderRegisterRequest, deadline_ms: int
    ) -> HolderRegisterAnswer:
        self._fail()
        self.registrations.append(request)
        return HolderRegisterAnswer(
            cluster_id="c",
            term=1,
            lease_ms=LEASE_MS,
            acknowledge_ms=ACKNOWLEDGE_MS,
            transaction_age_max_ms=AGE_MAX_MS,
            catalog_version=self.version,
        )

    async def acknowledge(self, request: AcknowledgeRequest, deadline_ms: int) -> AcknowledgeAnswer:
        self._fail()
        self.acknowledgements.append((self.clock.mono_ms(), request))
        return AcknowledgeAnswer(
            sequence=request.sequence,
            term=1,
            lease_ms=LEASE_MS,
            acknowledge_ms=ACKNOWLEDGE_MS,
            transaction_age_max_ms=AGE_MAX_MS,
            catalog_version=self.version,
        )

    async def sign_off(self, holder_id: str, incarnation: str) -> None:
        self._fail()
        if self.incarnation not in (None, incarnation):
            raise Conflict("stale-incarnation", node=holder_id)
        self.signed_off.append(incarnation)

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault
