"""What operators change while the service runs: typed, versioned, stored (STYLE 43)."""

from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from base.clock import Clock
from base.errors import Conflict
from keys.cluster import Setting, SettingKey
from keys.committer import Committer, StaleRead
from keys.kv import Kv
from keys.scan import scan
from keys.txn import Txn, snapshot
from keys.value import decode

MAINTENANCE = "maintenance"
RACES_MAX = 5  # operators who change one setting at once; the last one to try is told so


class Maintenance(BaseModel):
    """While it is on, nothing is failed over automatically; requests by hand need `force`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    enabled: bool = False
    reason: str | None = None
    changed_by: str | None = None
    changed_at_ms: int | None = None
    version: int = 0
    """0: it was never changed."""


@dataclass(slots=True)
class Settings:
    """The leader's view; survives a leader change because it is read again at the start of a term.

    `version` is the sum of the settings' versions: it moves whenever one of them does.
    """

    kv: Kv
    committer: Committer
    clock: Clock
    deadline_ms: int
    maintenance: Maintenance = field(default_factory=Maintenance)
    version: int = 0

    async def load(self) -> None:
        items, _ = await scan(self.kv, SettingKey.under(), deadline_ms=self.deadline_ms)
        stored = [decode(Setting, item.value, key=item.key.decode()) for item in items]
        self.version = sum(setting.version for setting in stored)
        for setting in stored:
            if setting.name == MAINTENANCE:
                self.maintenance = maintenance_of(setting)

    async def set_maintenance(self, enabled: bool, reason: str | None, by: str) -> Maintenance:
        key = SettingKey(MAINTENANCE)
        value = {"enabled": enabled, "reason": reason}
        for _ in range(RACES_MAX):
            seen = await snapshot(self.kv, key, deadline_ms=self.deadline_ms)
            old = seen.get(key)
            new = Setting(
                name=MAINTENANCE,
                value=value,
                version=old.version + 1 if old else 1,
                changed_by=by,
                changed_at_ms=self.clock.wall_ms(),
            )
            try:
                await self.committer.commit(Txn.on(seen).put(key, new))
            except StaleRead:
                continue
            self.version += 1
            self.maintenance = maintenance_of(new)
            return self.maintenance
        raise Conflict("object-locked", resource=f"setting {MAINTENANCE}")


def maintenance_of(setting: Setting | None) -> Maintenance:
    """From what is stored; None: never set."""
    if setting is None:
        return Maintenance()
    return Maintenance(
        enabled=setting.value["enabled"],
        reason=setting.value["reason"],
        changed_by=setting.changed_by,
        changed_at_ms=setting.changed_at_ms,
        version=setting.version,
    )


async def read_maintenance(kv: Kv, *, deadline_ms: int) -> Maintenance:
    """As any server reads it."""
    key = SettingKey(MAINTENANCE)
    return maintenance_of((await snapshot(kv, key, deadline_ms=deadline_ms)).get(key))
