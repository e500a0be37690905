"""What a run relies on in a source of candidates."""

from __future__ import annotations

from collections.abc import Sequence

from bestprompt.search import CandidateSource


def check_source(source: CandidateSource, prompts: Sequence[str], n: int = 5) -> None:
    """All that is promised of a source, asked for ``n`` prompts besides ``prompts``."""
    assert isinstance(source, CandidateSource)
    assert isinstance(source.fingerprint, str)
    assert source.fingerprint
    assert source.fingerprint == source.fingerprint, "it names the source, so it must not change"
    given = list(prompts)
    found = list(source.propose(given, n, 0))
    assert given == list(prompts), "what it is shown is not changed"
    assert len(found) <= n, "no more than asked for"
    assert all(isinstance(prompt, str) and prompt.strip() for prompt in found), "texts with something in them"
    assert list(source.propose(list(prompts), n, 0)) == found, "a run that is continued must get the same proposals"
    assert list(source.propose(list(prompts), 0, 0)) == []
