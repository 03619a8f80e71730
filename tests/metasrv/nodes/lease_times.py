"""One node, one region, and the length of its lease."""

LEASE_MS, TTL_MS = 10_000, 5_000


REGION, EPOCH, NODE = 7, 1, "dn-1"
