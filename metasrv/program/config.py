"""Settings of a server, beside those of every program (serving/config.py)."""

from pathlib import Path
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from metasrv.nodes.lease_table import wait_ms
from metasrv.program.store_access import StoreAccess
from metasrv_base.rows.retry import SENT_MS_MAX
from serving.config import StartConfig, checked_name


class ServerConfig(StartConfig):
    """Environment: `METASRV_SERVER_` and the name, as METASRV_SERVER_ETCD. What operators change
    later is in the store."""

    program: ClassVar[str] = "server"
    env_prefix: ClassVar[str] = "METASRV_SERVER_"

    server_id: str
    """Unique among the metasrvs of a cluster."""
    etcd: list[str] = Field(default=["http://127.0.0.1:2379"], min_length=1)
    """Endpoints, as URLs: all http://, or all https://."""
    etcd_ca_file: Path | None = None
    """PEM; who signed etcd's certificates. Default: whom this machine trusts."""
    etcd_cert_file: Path | None = None
    """PEM; what we show to etcd."""
    etcd_key_file: Path | None = None
    """PEM, mode 0600; of etcd_cert_file."""
    etcd_server_name: str | None = None
    """A name in the certificate of every endpoint; needed with several of them."""
    etcd_user: str | None = None
    """Of etcd's own users."""
    etcd_password_file: Path | None = None
    """Mode 0600; its first line is the password. It is never logged."""
    key_prefix: str = "metasrv/"
    """All keys of this cluster stand under it."""
    data_dir: Path
    """For the Spark driver's temporary files; holds nothing that must be kept."""

    leader_ttl_ms: int = Field(default=5_000, ge=1_000)
    """How long the seat of a silent leader stays taken."""
    keep_alive_ms: int = Field(default=1_600, ge=100)
    """Between renewals of the leader's lease; three fit in leader_ttl_ms."""
    store_deadline_ms: int = Field(default=2_000, ge=100)
    """Of one request to etcd."""
    heartbeat_ms: int = Field(default=2_000, ge=100)
    """Between heartbeats of a node; it is told by the leader."""
    region_lease_ms: int = Field(default=10_000, ge=500)
    """How long a node may serve its regions unheard; holds three heartbeats."""
    schema_lease_ms: int = Field(default=15_000, ge=1_000)
    """How long a frontend may serve unheard, and what a silent one costs a schema change, once. It
    outlives an election: four fifths of it, for it may be a fifth old, hold leader_ttl_ms and
    store_deadline_ms."""
    transaction_age_max_ms: int = Field(default=10_000, ge=100, le=SENT_MS_MAX)
    """A transaction on a frontend ends at this age; below schema_lease_ms."""
    phi_threshold: float = Field(default=8.0, gt=0, le=300)
    """Surprise at which a silent node counts as dead: 8 is once in 10^8 by chance."""
    phi_pause_ms: int = Field(default=3_000, ge=0)
    """Silence beyond the usual interval that is always forgiven."""
    running_max: int = Field(default=128, ge=1)
    """Procedures of clients that run at once."""
    queue_max: int = Field(default=10_000, ge=1)
    """Procedures that may be unfinished; more are answered 429."""
    repair_max: int = Field(default=32, ge=1)
    """Failovers and repairs that run at once, in places of their own."""
    stalled_ms: int = Field(default=60_000, ge=1_000)
    """A procedure that runs for so long without a finished step or progress is called stalled."""

    spark_master: str = "local[2]"
    """`local[N]`: in the driver's own process; `spark://HOST:PORT`: a cluster."""
    spark_driver_host: str = "127.0.0.1"
    """The host of this server by which executors of a cluster reach the driver."""
    spark_driver_memory: str = "512m"
    """Heap of the driver, as Java writes it."""
    spark_warm: bool = False
    """Start Spark with the server instead of with the first job."""
    import_folders: list[Path] = Field(default=[])
    """Absolute. Files below them, as Spark's executors see them, may be imported by whoever may
    change tables here. None: nothing may."""

    @field_validator("server_id")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return checked_name(value)

    @model_validator(mode="after")
    def _relations(self) -> Self:
        if 3 * self.keep_alive_ms > self.leader_ttl_ms:
            raise ValueError("leader_ttl_ms must hold three keep_alive_ms")
        if 3 * self.heartbeat_ms > self.region_lease_ms:
            raise ValueError("region_lease_ms must hold three heartbeat_ms")
        if self.transaction_age_max_ms >= self.schema_lease_ms:
            raise ValueError("transaction_age_max_ms must be below schema_lease_ms")
        if self.store_deadline_ms >= self.leader_ttl_ms:
            raise ValueError("store_deadline_ms must be below leader_ttl_ms")
        if 4 * self.schema_lease_ms < 5 * (self.leader_ttl_ms + self.store_deadline_ms):
            held = "leader_ttl_ms and store_deadline_ms"
            raise ValueError(f"four fifths of schema_lease_ms must hold {held}: an election")
        assert self.store, "checked as it is made"
        return self

    @property
    def store(self) -> StoreAccess:
        """Raises ValueError for an unsafe way to etcd."""
        return StoreAccess(
            endpoints=tuple(self.etcd),
            ca_file=self.etcd_ca_file,
            cert_file=self.etcd_cert_file,
            key_file=self.etcd_key_file,
            server_name=self.etcd_server_name,
            user=self.etcd_user,
            password_file=self.etcd_password_file,
        )

    @property
    def wait_ms(self) -> int:
        """W: see metasrv/nodes/lease_table.py."""
        return wait_ms(self.region_lease_ms)
