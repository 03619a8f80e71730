"""The settings that operators change while the service runs, as stored and as the leader holds
them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from keys.commit.committer import Committer, StaleRead
from keys.commit.txn import Snapshot, Txn, snapshot
from keys.model.cluster import SettingKey, SettingRecord
from keys.store.kv import KeyValue, Kv
from keys.store.readable import Tell, readable, skip_silently
from keys.store.scan import scan
from metasrv.settings.tunables import Maintenance, Pause, Tunables
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, Corrupt, Refused

MAINTENANCE = "maintenance"
PROCEDURES = "procedures"
RACES_MAX = 5  # operators who change one setting at once; the last one to try is told so


_UNREADABLE = "the stored setting cannot be read"
_WHEN_UNREADABLE: Mapping[str, Maintenance | Pause] = {
    MAINTENANCE: Maintenance(enabled=True, reason=_UNREADABLE),
    PROCEDURES: Pause(paused=True, reason=_UNREADABLE),
}
"""Switches that may have been thrown: nobody may take them for off. Others have their defaults."""


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """The stored value of every setting, at one revision."""

    values: Tunables = field(default_factory=Tunables)
    changes: Mapping[str, SettingRecord] = field(default_factory=dict)
    """Records by name; a setting that was never changed, or cannot be read, has none."""

    @property
    def version(self) -> int:
        """Moves whenever a setting does: the sum of their versions."""
        return sum(setting.version for setting in self.changes.values())

    def changed(self, setting: SettingRecord) -> "StoredSettings":
        """Raises Corrupt for a value that this version cannot read. A setting that it does not
        know is kept, and has no effect; one that is older than what is known changes nothing."""
        stored = self.changes.get(setting.name)
        if stored is not None and stored.version >= setting.version:
            return self
        values = self.values
        if setting.name in Tunables.model_fields:
            try:
                values = values.changed(setting.name, setting.value)
            except Refused as error:
                raise Corrupt("internal", what=f"setting {setting.name}") from error
        return StoredSettings(values, {**self.changes, setting.name: setting})

    def without(self, name: str) -> "StoredSettings":
        """The setting *name* cannot be read."""
        if name not in _WHEN_UNREADABLE:
            return self
        values = self.values.model_copy(update={name: _WHEN_UNREADABLE[name]})
        return StoredSettings(values, self.changes)


async def read_settings(kv: Kv, *, deadline_ms: int, tell: Tell = skip_silently) -> StoredSettings:
    """Reads all settings, on any server. *tell* is called for those that cannot be read."""
    items, _ = await scan(kv, SettingKey.under(), deadline_ms=deadline_ms)
    settings = StoredSettings()
    lost: list[KeyValue] = []

    def skip(item: KeyValue, error: Corrupt) -> None:
        lost.append(item)
        tell(item, error)

    by_key = {item.key: item for item in items}
    for row in readable(SettingKey, SettingRecord, items, skip):
        try:
            settings = settings.changed(row.value)
        except Corrupt as error:
            skip(by_key[bytes(row.key)], error)
    for item in lost:
        settings = settings.without(
            item.key.removeprefix(SettingKey.under().start).decode("latin-1")
        )
    return settings


Listener = Callable[[Tunables], None]


@dataclass(slots=True)
class SettingsStore:
    """The leader's view; survives a leader change because it is read again at the start of a term.

    Listeners are told at the start of a term and after every change.
    """

    kv: Kv
    committer: Committer
    clock: Clock
    deadline_ms: int
    stored: StoredSettings = field(default_factory=StoredSettings)
    unreadable: Tell = skip_silently
    _listeners: list[Listener] = field(default_factory=list)

    @property
    def version(self) -> int:
        return self.stored.version

    @property
    def values(self) -> Tunables:
        return self.stored.values

    @property
    def maintenance(self) -> Maintenance | None:
        """The maintenance that is on; None if it is off, or has expired by this server's clock."""
        now = self.values.maintenance
        return now if now.is_on(self.clock.wall_ms()) else None

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)
        listener(self.values)

    async def load(self) -> None:
        self._take(await read_settings(self.kv, deadline_ms=self.deadline_ms, tell=self.unreadable))

    async def put(
        self, name: str, value: object, by: str, expected_version: int | None = None
    ) -> None:
        """Durable when it returns. The value it has already changes nothing.

        Raises NotFound, Refused("invalid-request"), Conflict("version-mismatch") where the version
        is not the expected one, Conflict("object-locked") after too many races,
        Unavailable("storage-full").
        """
        for _ in range(RACES_MAX):
            read, new = await self._new_record(name, value, by, expected_version)
            if new == read.get(SettingKey(name)):
                return
            try:
                await self.committer.commit(Txn.on(read).put(SettingKey(name), new))
            except StaleRead:
                continue
            self._take(self.stored.changed(new))
            return
        raise Conflict("object-locked", resource=f"setting {name}")

    async def foreseen(
        self, name: str, value: object, by: str, expected_version: int | None = None
    ) -> StoredSettings:
        """All settings as they would be after `put`; nothing is stored. Raises what that would."""
        _, new = await self._new_record(name, value, by, expected_version)
        return self.stored.changed(new)

    async def _new_record(
        self, name: str, value: object, by: str, expected_version: int | None
    ) -> tuple[Snapshot, SettingRecord]:
        """Reads the setting, and returns it with its new record: the same one, if it has that
        value."""
        self.committer.must_have_space()
        if value is None and name in Tunables.model_fields:
            value = Tunables().plain(name)  # its default, which for some is null
        values = self.values.changed(name, value)
        if name == PROCEDURES:
            pause = values.procedures.after(self.values.procedures, self.clock.wall_ms())
            values = values.model_copy(update={name: pause})
        plain = values.plain(name)
        key = SettingKey(name)
        read = await snapshot(self.kv, key, deadline_ms=self.deadline_ms)
        old = read.get(key)
        version = old.version if old else 0
        if expected_version not in (None, version):
            expected = f"version {expected_version}"
            raise Conflict(
                "version-mismatch", name=name, expected=expected, found=f"version {version}"
            )
        if old is not None and old.value == plain:
            return read, old
        new = SettingRecord(
            name=name,
            value=plain,
            version=version + 1,
            changed_by=by,
            changed_at_ms=self.clock.wall_ms(),
        )
        return read, new

    def _take(self, stored: StoredSettings) -> None:
        self.stored = stored
        for listener in self._listeners:
            listener(stored.values)
