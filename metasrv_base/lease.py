"""The time for which the holder of a region or schema lease may use it. Pure."""

DRIFT_PPM_MAX = 1000
"""Bound on the rate error of a clock, in parts per million: 0.1 % (docs/guarantees.md)."""


def usable_ms(lease_ms: int) -> int:
    """Returns the ms for which a holder uses a lease, if its clock may be slow by the bound."""
    assert lease_ms >= 0
    return lease_ms - -(-lease_ms * DRIFT_PPM_MAX // 1_000_000)
