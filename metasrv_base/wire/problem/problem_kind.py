"""The definition of one problem code: status, error class, texts and advice."""

from dataclasses import dataclass

from metasrv_base.errors import MetaError


@dataclass(frozen=True, slots=True)
class ProblemKind:
    """The error class says whether it was done; the code says what happened."""

    code: str
    status: int
    error: type[MetaError]
    title: str
    details: tuple[str, ...]
    """Tried in order: the first whose facts are all known is shown. The last needs none."""
    advice: str
    """The next action for a person or a program."""
    retry_after_s: int | None = None
    """Time after which a client retries if the error does not say; None: a retry is useless."""

    @property
    def retryable(self) -> bool:
        return self.retry_after_s is not None
