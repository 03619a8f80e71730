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
    """The id of this server, unique among the metasrvs of a cluster."""
    etcd: list[str] = Field(default=["http://127.0.0.1:2379"], min_length=1)
    """URLs of etcd's endpoints: all http://, or all https://."""
    etcd_ca_file: Path | None = None
    """PEM file of the authority that signed etcd's certificates. Default: the authorities that this
    machine trusts."""
    etcd_cert_file: Path | None = None
    """PEM file of the certificate that this server shows to etcd."""
    etcd_key_file: Path | None = None
    """PEM file of the key of etcd_cert_file, mode 0600."""
    etcd_server_name: str | None = None
    """A name in the certificate of every endpoint; needed with several endpoints."""
    etcd_user: str | None = None
    """The user of etcd that this server logs in as."""
    etcd_password_file: Path | None = None
    """File with the password of etcd_user in its first line, mode 0600. It is never logged."""
    key_prefix: str = "metasrv/"
    """The prefix of all keys of this cluster in etcd."""
    data_dir: Path
    """Folder for the Spark driver's temporary files; holds nothing that must be kept."""

    leader_ttl_ms: int = Field(default=5_000, ge=1_000)
    """The time after which a silent leader can be replaced."""
    keep_alive_ms: int = Field(default=1_600, ge=100)
    """The interval at which the leader renews its lease; leader_ttl_ms must hold three of them."""
    store_deadline_ms: int = Field(default=2_000, ge=100)
    """The deadline of one request to etcd."""
    heartbeat_ms: int = Field(default=2_000, ge=100)
    """The interval of nodes' heartbeats; nodes learn it from the leader."""
    region_lease_ms: int = Field(default=10_000, ge=500)
    """The time for which a node may serve its regions without an answer to a heartbeat; it must
    hold three heartbeat_ms."""
    schema_lease_ms: int = Field(default=15_000, ge=1_000)
    """The time for which a frontend may serve without an answer from the leader; a silent frontend
    delays a schema change by it, once. Four fifths of it must hold leader_ttl_ms and
    store_deadline_ms, so that a lease outlives an election."""
    transaction_age_max_ms: int = Field(default=10_000, ge=100, le=SENT_MS_MAX)
    """The age at which a transaction on a frontend ends; it must be below schema_lease_ms."""
    phi_threshold: float = Field(default=8.0, gt=0, le=300)
    """The suspicion (phi) at which a silent node counts as dead: 8 is once in 10^8 by chance."""
    phi_pause_ms: int = Field(default=3_000, ge=0)
    """The silence beyond a node's usual interval that raises no suspicion."""
    running_max: int = Field(default=128, ge=1)
    """The most procedures of clients that run at once."""
    queue_max: int = Field(default=10_000, ge=1)
    """The most procedures that are not over; further requests are answered 429."""
    repair_max: int = Field(default=32, ge=1)
    """The most failovers and repairs that run at once, beside running_max."""
    stalled_ms: int = Field(default=60_000, ge=1_000)
    """The time without a finished step or progress after which a running procedure counts as
    stalled."""

    spark_master: str = "local[2]"
    """The Spark master: `local[N]` runs in the driver's own process, `spark://HOST:PORT` is a
    cluster."""
    spark_driver_host: str = "127.0.0.1"
    """The host of this server at which executors of a cluster reach the driver."""
    spark_driver_memory: str = "512m"
    """The heap of the Spark driver, as Java writes it, such as `512m`."""
    spark_warm: bool = False
    """Start Spark with the server instead of with the first job."""
    import_folders: list[Path] = Field(default=[])
    """Absolute folders, as Spark's executors see them. Users who may change tables may import the
    files below them. None: no file can be imported."""

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
