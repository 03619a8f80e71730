"""The settings of a frontend, beside those of every program (serving/config.py)."""

from typing import ClassVar

from pydantic import Field, field_validator

from serving.config import ProgramConfig, checked_name

ANSWER_BYTES_MIN = 64 << 20


class FrontendConfig(ProgramConfig):
    """Environment: `METASRV_FRONTEND_` and the name, as METASRV_FRONTEND_FRONTEND_ID."""

    program: ClassVar[str] = "frontend"
    env_prefix: ClassVar[str] = "METASRV_FRONTEND_"

    frontend_id: str
    """The id of this frontend, unique among the processes that hold schema leases."""

    zone: str = "default"
    """The zone of this frontend: copies in it are the first to be asked for rows that may be as old
    as `max_lag`."""
    answer_bytes: int = Field(default=256 << 20, ge=ANSWER_BYTES_MIN)
    """Memory for answers with rows that readers have not received yet: half for pages, half for
    streams, each of which counts four pages. Beyond it, reads are refused with 503."""

    @field_validator("frontend_id", "zone")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        return checked_name(value)
