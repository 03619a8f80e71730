"""The leader and the servers that are up: answered by any server, leader or not."""

from keys.model.cluster import Candidate, CandidateKey, LeaderKey, LeaderRecord
from keys.store.kv import Get, KeyValue, Request
from keys.store.readable import readable, skip_silently
from keys.value import decode
from metasrv.service.state.state import ServerState
from metasrv_base.errors import Unavailable
from metasrv_base.wire.api.cluster import ClusterBody, LeaderBody, MetasrvBody


async def cluster(state: ServerState) -> ClusterBody:
    """Reads the cluster from etcd; while etcd is silent, answers what this server knows by
    itself."""
    facts = state.facts
    try:
        cluster_id = await state.cluster()
        leader, servers = await _election(state)
    except Unavailable:
        cluster_id = state.cluster_id
        leader = _remembered(state)
        leads = leader is not None and leader.id == facts.server
        servers = (MetasrvBody(id=facts.server, url=facts.url, version=facts.version, leads=leads),)
    return ClusterBody(
        cluster_id=cluster_id,
        server_id=facts.server,
        leader=leader,
        metasrvs=servers,
        catalog_version=state.follower.catalog.version,
        stale=state.is_stale,
        version=facts.version,
    )


async def _election(state: ServerState) -> tuple[LeaderBody | None, tuple[MetasrvBody, ...]]:
    """The seat and the candidates, at one revision."""
    start, end = CandidateKey.under()
    gets = (Get(bytes(LeaderKey())), Get(start, end))
    request = Request(reads=gets)
    answer = await state.kv.txn(request, deadline_ms=state.facts.store_deadline_ms)
    seat, candidates = answer.ranges
    leader = _seated(seat[0]) if seat else None
    rows = readable(CandidateKey, Candidate, candidates, skip_silently)
    servers = tuple(_server(row.value, leader) for row in rows)
    return leader, servers


def _seated(item: KeyValue) -> LeaderBody:
    stored = decode(LeaderRecord, item.value, key=item.key.decode())
    return LeaderBody(id=stored.server, url=stored.url, term=item.mod_revision)


def _server(stored: Candidate, leader: LeaderBody | None) -> MetasrvBody:
    return MetasrvBody(
        id=stored.server,
        url=stored.url,
        version=stored.version,
        leads=leader is not None and leader.id == stored.server,
    )


def _remembered(state: ServerState) -> LeaderBody | None:
    if state.leads and state.term is not None:
        return LeaderBody(id=state.facts.server, url=state.facts.url, term=state.term.number)
    other = state.other_leader
    return None if other is None else LeaderBody(id=other.server, url=other.url, term=None)
