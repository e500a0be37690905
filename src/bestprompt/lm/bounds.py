"""How long a prompt may be at most, where its tokeniser is not at hand."""

from __future__ import annotations

from bestprompt.types import Request

_MESSAGE_OVERHEAD = 16  # role, separators and opening of the answer, in the templates in use


def most_prompt_tokens(request: Request) -> int:
    """An upper bound: byte-level tokenisers never make more tokens than bytes, plus what a chat template adds."""
    return sum(len(message.content.encode()) + _MESSAGE_OVERHEAD for message in request.messages) + _MESSAGE_OVERHEAD
