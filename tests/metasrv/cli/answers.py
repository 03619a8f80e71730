"""Answers of a service that the command line shows."""

from typing import Any

TABLES = "/v1/catalogs/main/schemas/public/tables"
NODE: dict[str, Any] = {
    "id": "dn-2",
    "role": "datanode",
    "state": "removed",
    "address": "http://dn-2",
    "zone": "z",
    "root": "/data/dn-2",
    "version": "0",
    "incarnation": "i-1",
    "registered_at": "2013-01-01T00:00:00Z",
    "phi": 0.0,
    "heard_ms_ago": None,
    "lease_left_ms": 0,
    "cordon": None,
    "resources": None,
    "leads": 0,
}
