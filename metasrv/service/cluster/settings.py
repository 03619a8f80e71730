"""Settings, maintenance and the pause of procedures: read anywhere, changed at the leader."""

from keys.model.cluster import SettingRecord
from metasrv.service.bodies.shapes import time_of
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import only_the_leader
from metasrv.service.state.state import ServerState
from metasrv.settings.settings import MAINTENANCE, PROCEDURES, StoredSettings, read_settings
from metasrv.settings.tunables import DEFAULTS, Tunables, meaning_of, must_be_a_setting, unit_of
from metasrv_base.wire.api.cluster import (
    MaintenanceBody,
    MaintenanceRequest,
    PauseBody,
    PauseRequest,
    SettingList,
    SettingRequest,
)
from metasrv_base.wire.node.nodes import SettingBody


async def settings(state: ServerState) -> SettingList:
    """Every setting there is; one that was never changed shows its default."""
    now = await _stored(state)
    return SettingList(settings=tuple(_body(now, name) for name in sorted(Tunables.model_fields)))


async def setting(state: ServerState, name: str) -> SettingBody:
    """Raises NotFound."""
    must_be_a_setting(name)
    return _body(await _stored(state), name)


async def put_setting(
    state: ServerState, context: RequestContext, name: str, request: SettingRequest
) -> SettingBody:
    """Raises NotFound, Refused, Conflict("version-mismatch")."""
    return _body(await _put(state, context, name, request.value, request.expected_version), name)


async def maintenance(state: ServerState) -> MaintenanceBody:
    """Maintenance as it is now: one that has expired is off."""
    return _maintenance(state, await _stored(state))


def _maintenance(state: ServerState, stored: StoredSettings) -> MaintenanceBody:
    now, change = stored.values.maintenance, stored.changes.get(MAINTENANCE)
    return MaintenanceBody(
        enabled=now.is_on(state.clock.wall_ms()),
        reason=now.reason,
        changed_by=change.changed_by if change else None,
        changed_at=_changed_at(change),
        expires_at=None if now.expires_at_ms is None else time_of(now.expires_at_ms),
        version=change.version if change else 0,
    )


async def set_maintenance(
    state: ServerState, context: RequestContext, request: MaintenanceRequest
) -> MaintenanceBody:
    expires_at_ms = None
    if request.enabled and request.expires_in_s is not None:
        expires_at_ms = state.clock.wall_ms() + request.expires_in_s * 1000
    value = {
        "enabled": request.enabled,
        "reason": request.reason,
        "expires_at_ms": expires_at_ms,
    }
    return _maintenance(state, await _put(state, context, MAINTENANCE, value))


async def pause(state: ServerState) -> PauseBody:
    return _pause(await _stored(state))


def _pause(stored: StoredSettings) -> PauseBody:
    now, change = stored.values.procedures, stored.changes.get(PROCEDURES)
    return PauseBody(
        paused=now.paused,
        reason=now.reason,
        changed_by=change.changed_by if change else None,
        changed_at=_changed_at(change),
        version=change.version if change else 0,
    )


async def set_pause(
    state: ServerState, context: RequestContext, request: PauseRequest
) -> PauseBody:
    value = {"paused": request.paused, "reason": request.reason}
    return _pause(await _put(state, context, PROCEDURES, value))


async def _put(
    state: ServerState,
    context: RequestContext,
    name: str,
    value: object,
    expected: int | None = None,
) -> StoredSettings:
    """All settings as they are then, or, in a dry run, as they would be."""
    context.require_no_version()
    with only_the_leader():
        term = await state.leading()
        if context.dry_run:
            return await term.settings.foreseen(name, value, context.principal, expected)
        await term.settings.put(name, value, context.principal, expected)
        return term.settings.stored


async def _stored(state: ServerState) -> StoredSettings:
    if state.leads and state.term is not None:
        return state.term.settings.stored
    return await read_settings(state.kv, deadline_ms=state.facts.store_deadline_ms)


def _body(stored: StoredSettings, name: str) -> SettingBody:
    change = stored.changes.get(name)
    return SettingBody(
        name=name,
        value=stored.values.plain(name),
        version=change.version if change else 0,
        default=DEFAULTS.plain(name),
        unit=unit_of(name),
        meaning=meaning_of(name),
        changed_by=change.changed_by if change else None,
        changed_at=_changed_at(change),
    )


def _changed_at(change: SettingRecord | None) -> str | None:
    return None if change is None else time_of(change.changed_at_ms)
