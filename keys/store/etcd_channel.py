"""One gRPC channel to all endpoints of an etcd cluster, with retries off."""

import asyncio
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import grpc
from aetcd import rpc

RECONNECT_MS_MIN = 100
RECONNECT_MS_MAX = 1_000
PING_MS = 6_000  # etcd closes connections that ping more often than every 5 s
PING_ANSWER_MS = 2_000

_ROUND_ROBIN = json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})
OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.enable_retries", 0),  # two copies of a write are the committer's decision (P1)
    ("grpc.service_config", _ROUND_ROBIN),
    ("grpc.use_local_subchannel_pool", 1),  # no connection shared with another EtcdKv
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS_MIN),
    ("grpc.min_reconnect_backoff_ms", RECONNECT_MS_MAX),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_MS_MAX),
    ("grpc.keepalive_time_ms", PING_MS),
    ("grpc.keepalive_timeout_ms", PING_ANSWER_MS),
    ("grpc.http2.ping_timeout_ms", PING_ANSWER_MS),  # without it gRPC waits for a minute
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", -1),  # a page is bounded by its keys; it must be readable
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """TLS, as PEM bytes. `certificate` and `private_key` only where etcd wants them of clients."""

    ca: bytes | None = None
    certificate: bytes | None = None
    private_key: bytes | None = None
    server_name: str | None = None
    """A name that the certificate of every endpoint bears; needed with several endpoints, because
    gRPC compares one name for all of them."""


async def open_channel(endpoints: Sequence[str], credentials: Credentials | None) -> rpc.Channel:
    """*endpoints* are `host:port`. Connects at the first call."""
    assert endpoints, "no etcd endpoint"
    name = credentials.server_name if credentials else None
    assert name or not credentials or len(endpoints) == 1, "several endpoints need server_name"
    target = await _target(endpoints)
    if credentials is None:
        return rpc.insecure_channel(target, options=OPTIONS)
    tls = grpc.ssl_channel_credentials(
        credentials.ca, credentials.private_key, credentials.certificate
    )
    named = [("grpc.ssl_target_name_override", name)] if name else []
    return rpc.secure_channel(target, tls, options=[*OPTIONS, *named])


async def _target(endpoints: Sequence[str]) -> str:
    """gRPC resolves one name again when it must; a list must be addresses, resolved here once."""
    if len(endpoints) == 1:
        return f"dns:///{endpoints[0]}"
    loop = asyncio.get_running_loop()
    addresses: list[str] = []
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        resolved = await loop.getaddrinfo(host, int(port), family=socket.AF_INET)
        addresses += [f"{address[0]!s}:{port}" for *_, address in resolved[:1]]
    return "ipv4:" + ",".join(addresses)
