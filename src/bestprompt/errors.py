"""Every exception the package raises on purpose, in one tree.

::

    BestPromptError
    ├─ ConfigError        a setting: file, dotted key, value, what is allowed
    ├─ TaskError          a task or its data: file, line, what is wrong
    ├─ MissingExtraError  an optional dependency: the exact pip line
    ├─ LMError            a language-model call
    │  ├─ LMRefused       the model or its filter declined to answer: final for that request
    │  ├─ LMTimeout       no answer in time: may be tried again
    │  └─ LMAuthError     bad or missing credentials: stops the run at once
    ├─ SurrogateError     a fit that failed, with its diagnostics
    ├─ SearchError        the search stage cannot build the candidate set
    ├─ NothingScored      every answer of the pilot scored 0: likely cause, and the setting that mends it
    ├─ LedgerError        the record of a run: newer schema, run not found, other configuration
    └─ BudgetExhausted    caught by the loop; reaches the caller only when there is no answer at all

Messages are written to be printed in a terminal as they are: what is wrong, then what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bestprompt.types import Usage


MOST_SAID = 2000  # characters of an error that tells what a server said


class BestPromptError(Exception):
    """Base of every error raised on purpose; the command line prints its text without a traceback."""


class ConfigError(BestPromptError):
    """A setting is unknown, missing or out of range."""


class TaskError(BestPromptError):
    """A task, or a row of its data, cannot be used.

    Args:
        message: What is wrong and what is expected.
        file: Where the problem stands, if it came from a file.
        line: One-based line (or row) number in that file.
    """

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None) -> None:
        self.file, self.line = file, line
        where = f"{file}, line {line}: " if file and line else f"{file}: " if file else ""
        super().__init__(where + message)


class MissingExtraError(BestPromptError):
    """An optional dependency is needed and not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency. Install it with: pip install 'bestprompt[{extra}]'")


class LMError(BestPromptError):
    """A language-model call failed.

    Args:
        message: What happened, with no credential in it.
        retryable: Whether the same call may succeed later.
        systemic: Whether every further call would fail the same way, so that the run must stop.
        usage: What may have been billed for it: ``Usage()`` for a request that was turned away or never left. Left out
            where that is not known; the most that the request could need is then charged.
        retry_after: Seconds that the server asks to wait before another attempt.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = True,
        systemic: bool = False,
        usage: Usage | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.retryable, self.systemic, self.usage, self.retry_after = retryable, systemic, usage, retry_after
        # A server may say anything at any length; the beginning tells what it was.
        super().__init__(message if len(message) <= MOST_SAID else f"{message[:MOST_SAID]}…")

    @property
    def unbilled(self) -> bool:
        """Whether it is known that nothing was billed."""
        return self.usage is not None and self.usage.calls == 0


class LMRefused(LMError):
    """The model or its content filter declined to answer this request; asking again does not help."""

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message, retryable=False, usage=usage)


class LMTimeout(LMError):
    """No answer arrived in time."""


class LMAuthError(LMError):
    """The endpoint rejected the credentials, or none were given."""

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message, retryable=False, systemic=True, usage=usage)


class SurrogateError(BestPromptError):
    """A surrogate could not be fitted; ``diagnostics`` says how far it got."""

    def __init__(self, message: str, diagnostics: Mapping[str, float] | None = None) -> None:
        self.diagnostics = dict(diagnostics or {})
        super().__init__(message)


class SearchError(BestPromptError):
    """The candidate set cannot be built from these examples with these settings."""


class NothingScored(BestPromptError):
    """Every answer of the pilot scored 0, so that the rest of the budget would be spent for nothing."""


class LedgerError(BestPromptError):
    """The record of a run cannot be used as asked."""


class BudgetExhausted(BestPromptError):
    """The next call would exceed the budget; raised before anything is sent."""
