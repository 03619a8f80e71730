"""The parts of large versions as they were written, and updates of the log with what is in them."""

from collections import defaultdict
from dataclasses import dataclass, field

import orjson

from keys.commit.staged_parts import StagedParts, is_staged
from keys.model.log import CatalogUpdate
from keys.model.staging.parts import BatchPartKey
from keys.store.kv import Event, KeyValue
from keys.value import decode
from metasrv_base.concurrency.turns import at_once


@dataclass
class StagedUpdates:
    """Parts that were deleted since are kept."""

    _parts: dict[str, dict[int, KeyValue]] = field(default_factory=lambda: defaultdict(dict))

    def note(self, event: Event) -> None:
        start, end = BatchPartKey.under()
        if event.value is not None and start <= event.key < end:
            key = BatchPartKey.parse(event.key)
            self._parts[key.batch][key.part] = KeyValue(event.key, event.value, 1, 1)

    def whole(self, key: str, raw: bytes) -> bytes:
        """The stored update as it would be if one value could hold it. Raises Corrupt unless its
        parts were written before it."""
        if not is_staged(raw):
            return raw
        ref = decode(CatalogUpdate, raw, key=key).staged
        assert ref is not None, "an update of its format refers to parts"
        items = [item for _, item in sorted(self._parts[ref.batch].items())]
        lists = at_once(at_once(StagedParts.of(ref, items)).entry_lists())
        entries = [entry for text in lists for entry in orjson.loads(text)]
        return orjson.dumps(orjson.loads(raw) | {"entries": entries})
