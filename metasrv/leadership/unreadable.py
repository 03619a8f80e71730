"""Reports stored values that this server cannot read."""

import structlog

from keys.store.kv import KeyValue
from keys.value import NewerFormat
from metasrv_base.errors import Corrupt

TOLD_MAX = 1_024  # values reported in one term: by then somebody has been woken

log = structlog.get_logger()


class Unreadable:
    """A `Tell` (keys/store/readable.py) that logs each value once in a term, however often it is
    met.
    """

    def __init__(self) -> None:
        self._logged: set[tuple[bytes, int]] = set()

    def __len__(self) -> int:
        return len(self._logged)

    def __call__(self, item: KeyValue, error: Corrupt) -> None:
        value_id = (item.key, item.mod_revision)
        if value_id in self._logged or len(self._logged) >= TOLD_MAX:
            return
        self._logged.add(value_id)
        log.error(
            "value_unreadable",
            key=item.key.decode("utf-8", "backslashreplace"),
            revision=item.mod_revision,
            is_newer=isinstance(error, NewerFormat),
            runbook="docs/operate/value-unreadable.md",
        )
