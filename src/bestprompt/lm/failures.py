"""What a failed HTTP request means: what went wrong, whether it may have been billed, and when to ask again.

A request may have been billed once it has left: its answer was late, cut off or lost. It was not if the connection was
never made, or if the server turned it away with a status of 4xx or 5xx.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from bestprompt.errors import LMAuthError, LMError, LMRefused, LMTimeout
from bestprompt.types import Usage

REFUSALS = {"content_filter", "content_policy_violation"}
# By name, because the SDK has changed the library it sends with, and the names of its exceptions have stayed.
_NEVER_LEFT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}
_CANNOT_LEAVE = {"LocalProtocolError", "InvalidURL", "UnicodeError"}
_LATER = (408, 409, 429)


def failure(error: Exception, model: str, where: str, timeout: object, scrub: Callable[[str], str]) -> LMError:
    """``error``, raised by the SDK or by what it sends with, as one of ours.

    Args:
        error: What was raised.
        model: The model's name.
        where: Host and port of its server.
        timeout: Seconds that were waited for.
        scrub: Removes the key from a text.
    """
    import openai as sdk

    text, cause = scrub(str(error)), error.__cause__ or error
    if _is_one_of(cause, _CANNOT_LEAVE):
        what = f"A request to {model} cannot be sent: {scrub(str(cause))}"
        return LMError(what, retryable=False, systemic=True, usage=Usage())
    never_left = _is_one_of(cause, _NEVER_LEFT)
    if isinstance(error, sdk.APITimeoutError) and not never_left:
        return LMTimeout(f"{model} did not answer within {timeout} s.")
    if isinstance(error, sdk.APIConnectionError):
        if never_left:
            what = f"Cannot reach the server of {model} at {where}: {scrub(str(cause)) or text}"
            return LMError(what, usage=Usage())
        return LMError(f"The connection to the server of {model} was lost: {scrub(str(cause)) or type(cause).__name__}")
    if isinstance(error, sdk.APIStatusError):
        return _rejection(error.status_code, error.code, error.response.headers, text, model)
    return LMError(f"{model}: {text}")


def _rejection(status: int, code: str | None, headers: Mapping[str, str], text: str, model: str) -> LMError:
    if status in (401, 403):
        return LMAuthError(f"The server of {model} rejected the key: {text}", usage=Usage())
    if status == 404:
        what = f"The server knows no {model!r}: {text}"
        return LMError(what, retryable=False, systemic=True, usage=Usage())
    if code in REFUSALS:
        return LMRefused(f"{model} declined to answer: {text}", usage=Usage())
    if code == "insufficient_quota":
        what = f"The account has no quota left: {text}"
        return LMError(what, retryable=False, systemic=True, usage=Usage())
    later = status in _LATER or status >= 500
    wait = retry_after(headers) if later else None
    return LMError(f"{model}: {text}", retryable=later, usage=Usage(), retry_after=wait)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the headers of a rejection, given as a number or as a date; ``None`` if they do not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError, OverflowError):
        return None


def _is_one_of(error: BaseException, names: set[str]) -> bool:
    return any(kind.__name__ in names for kind in type(error).__mro__)
