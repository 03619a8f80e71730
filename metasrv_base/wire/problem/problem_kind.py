"""What one problem code stands for: status, error class, words, and what to do about it."""

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
    """What a person or a program does next."""
    retry_after_s: int | None = None
    """How long a client waits when the error does not say; None: repeating it is no use."""

    @property
    def retryable(self) -> bool:
        return self.retry_after_s is not None
