"""Every setting that operators change while the service runs: its type, default, unit and meaning.

The field's name is the setting's. `null`: the value with which the program was started.
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.problem.problems import FieldError, field_errors

REASON_CHARS_MAX = 500


class _Strict(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Maintenance(_Strict):
    """While it is on, nothing is failed over by detection; requests by hand need `force` (G40)."""

    enabled: bool = False
    reason: str | None = Field(default=None, max_length=REASON_CHARS_MAX)
    expires_at_ms: int | None = Field(default=None, ge=0)
    """Wall clock of the leader; None: until it is switched off."""

    def is_on(self, now_ms: int) -> bool:
        return self.enabled and (self.expires_at_ms is None or now_ms < self.expires_at_ms)


class Pause(_Strict):
    """While it is on, no procedure begins a step; the step in flight of each ends."""

    paused: bool = False
    reason: str | None = Field(default=None, max_length=REASON_CHARS_MAX)
    since_ms: int | None = Field(default=None, ge=0)
    """Wall clock of the leader at which this pause began. Kept by the service."""
    stood_ms: int = Field(default=0, ge=0)
    """The length of all earlier pauses: deadlines of changes move by it. Kept by the service."""

    def after(self, before: "Pause", now_ms: int) -> "Pause":
        """This request, with the times that *before* and *now_ms* give it."""
        stood_ms, since_ms = before.stood_ms, before.since_ms
        if before.paused and not self.paused:
            stood_ms += 0 if since_ms is None else max(0, now_ms - since_ms)
        if not before.paused or since_ms is None:
            since_ms = now_ms
        times = {"since_ms": since_ms if self.paused else None, "stood_ms": stood_ms}
        return self.model_copy(update=times)


def _of(default: Any, unit: str, **bounds: Any) -> Any:
    return Field(default=default, json_schema_extra={"unit": unit}, **bounds)


class Tunables(_Strict):
    """All settings at one moment."""

    maintenance: Maintenance = Maintenance()
    """Stops automatic failover. Better set by `PUT /v1/cluster/maintenance`."""
    procedures: Pause = Pause()
    """Stops all procedures. Better set by `PUT /v1/cluster/procedures`."""
    flapping_returns: int = _of(3, "returns", ge=2, le=100)
    """The number of returns within `flapping_window_ms` from which a node is reported as
    flapping."""
    flapping_window_ms: int = _of(600_000, "ms", ge=1_000, le=86_400_000)
    """The window in which `flapping_returns` counts."""
    safe_lost_time_ms: int = _of(3_600_000, "ms", ge=60_000, le=365 * 86_400_000)
    """The time after which a dead node is offline: its copies of regions are made elsewhere."""
    node_retention_ms: int = _of(30 * 86_400_000, "ms", ge=60_000, le=3_650 * 86_400_000)
    """The time after which a dead node is removed, unless something still names it."""
    drop_retention_ms: int = _of(7 * 86_400_000, "ms", ge=60_000, le=3_650 * 86_400_000)
    """The time for which a dropped table can be undropped; then it is purged, with its files."""
    removes_orphans: bool = _of(True, "true or false")
    """Whether folders of regions that no route names are put into quarantine, and deleted after
    `orphan_retention_ms`."""
    orphan_grace_ms: int = _of(3_600_000, "ms", ge=1_000, le=365 * 86_400_000)
    """The time for which a folder that no route names, and a node that has come back, are left
    alone."""
    orphan_retention_ms: int = _of(86_400_000, "ms", ge=1_000, le=3_650 * 86_400_000)
    """The time for which a folder stays in quarantine."""
    history_retention_ms: int = _of(7 * 86_400_000, "ms", ge=86_400_000, le=3_650 * 86_400_000)
    """The time for which a procedure that is over can be read, and its idempotency key is known."""
    history_bytes_max: int = _of(1_000 << 20, "bytes", ge=1 << 20, le=1 << 40)
    """The most bytes of etcd for procedures that are over. Beyond it the oldest are deleted early,
    but none of the last hour."""
    catalog_history_ms: int = _of(7 * 86_400_000, "ms", ge=0, le=3_650 * 86_400_000)
    """The time for which old versions of the catalog can be read."""
    catalog_history_bytes_max: int = _of(128 << 20, "bytes", ge=0, le=1 << 40)
    """The most bytes of etcd for old versions of the catalog: its log and all snapshots. Beyond it
    the oldest versions go early, but none that is pinned."""
    phi_threshold: float | None = _of(None, "phi", gt=0, le=300)
    """The suspicion (phi) at which a silent node counts as dead."""
    running_max: int | None = _of(None, "procedures", ge=1, le=100_000)
    """The most changes that run at once; the others queue."""
    repair_max: int | None = _of(None, "procedures", ge=1, le=100_000)
    """The most failovers that run at once, beside the changes."""
    queue_max: int | None = _of(None, "procedures", ge=1, le=1_000_000)
    """The most changes that are not over; further ones are answered 429."""
    reorg_jobs_max: int = _of(4, "jobs", ge=1, le=64)
    """The most Spark jobs of one reorg at a time, from its next round on."""
    reorg_regions_max: int = _of(16, "regions", ge=1, le=64)
    """The most regions that one round of a reorg reads: its record lists the files of all of
    them."""

    fetch_bytes_per_s: int | None = _of(None, "bytes per second", ge=0, le=1 << 40)
    """The most bytes per second of other nodes' files that each datanode fetches for its copies; 0:
    no limit. Less than 131072 counts as that."""

    def changed(self, name: str, value: object) -> Self:
        """Returns a copy with another value of one setting. Raises NotFound,
        Refused("invalid-request")."""
        must_be_a_setting(name)
        try:
            new = type(self).model_validate({name: value})
        except ValidationError as error:
            faults = field_errors(
                [
                    {**error_detail, "loc": error_detail["loc"][1:]}
                    for error_detail in error.errors()
                ],
                value,
            )
            errors = tuple(_under_value(error_detail) for error_detail in faults)
            raise Refused("invalid-request", errors=errors) from error
        return self.model_copy(update={name: getattr(new, name)})

    def plain(self, name: str) -> Any:
        """One setting as JSON holds it."""
        return self.model_dump(mode="json", include={name})[name]


def _under_value(field_error: FieldError) -> FieldError:
    return field_error.model_copy(update={"pointer": f"/value{field_error.pointer}"})


DEFAULTS = Tunables()


def must_be_a_setting(name: str) -> None:
    """Raises NotFound."""
    if name not in Tunables.model_fields:
        raise NotFound("not-found", what="setting", name=name)


def unit_of(name: str) -> str | None:
    extra = Tunables.model_fields[name].json_schema_extra
    return str(extra["unit"]) if isinstance(extra, dict) else None


def meaning_of(name: str) -> str:
    return Tunables.model_fields[name].description or ""
