"""Legal changes of a pause between two stored values of one procedure, judged from raw JSON.

Written from docs/keyspace.md, without any model of the product.
"""

from collections.abc import Iterator
from typing import Any

STAYS = ("kind", "step", "phase", "state", "trail", "timeline")
"""Fields that nothing moves while the procedure is paused."""


def faults(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yields the faults of *new* as the value that follows *old*; both are records."""
    was, since = old.get("paused_at_ms"), new.get("paused_at_ms")
    control = _control(old, new)
    action = None if control is None else control["action"]
    if action == "pause" and (was is not None or since is None):
        yield f"a pause of one that is paused since {was}: {since}"
    if action == "resume":
        yield from _resumed(old, new, control)
    elif was != since and action != "pause" and new["phase"] == "forward":
        yield f"paused since {was}, then {since}, by {action}"
    if was is not None and since is not None:
        moved = [name for name in STAYS if old.get(name) != new.get(name)]
        if moved:
            yield f"it moved while it was paused: {moved}"


def _resumed(old: dict[str, Any], new: dict[str, Any], control: Any) -> Iterator[str]:
    """The deadline moves once, by as long as it was paused."""
    was, since = old.get("paused_at_ms"), new.get("paused_at_ms")
    if was is None or since is not None:
        yield f"a resume of one that is paused since {was}: {since}"
        return
    later_ms = new["deadline_at_ms"] - old["deadline_at_ms"]
    if later_ms < max(0, control["at_ms"] - was):
        yield f"paused from {was} until {control['at_ms']}, its deadline moves by {later_ms}"


def _control(old: dict[str, Any], new: dict[str, Any]) -> Any:
    """The control that *new* is the write of; None: none."""
    before, after = old.get("controls") or [], new.get("controls") or []
    return after[-1] if after != before else None
