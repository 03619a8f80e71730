"""How long a lease is used by who holds it: what regions and schemas are held by. Pure."""

DRIFT_PPM_MAX = 1000
"""Bound on the rate error of a clock, in parts per million: 0.1 % (docs/guarantees.md)."""


def usable_ms(lease_ms: int) -> int:
    """How long a lease of `lease_ms` is used by a holder whose clock may be slow by the bound."""
    assert lease_ms >= 0
    return lease_ms - -(-lease_ms * DRIFT_PPM_MAX // 1_000_000)
