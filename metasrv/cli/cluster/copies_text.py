"""Copies of a region in one line for people. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metasrv_base.wire.api.tables import RegionCopyBody


def copies_text(copies: Sequence[RegionCopyBody]) -> str:
    """Nodes, and the role of each: `dn-2 in-sync, dn-3 learner`. `-` for none."""
    return ", ".join(f"{copy.node} {_role(copy)}" for copy in copies) or "-"


def _role(copy: RegionCopyBody) -> str:
    return f"{copy.role} (eligible)" if copy.eligible else copy.role
