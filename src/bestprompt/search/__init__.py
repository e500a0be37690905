"""Stage 1: from a few example prompts to a set of candidates with coordinates."""

from bestprompt.search.builder import build_candidates
from bestprompt.search.embed import embed_candidates
from bestprompt.search.rewrite import rewrite
from bestprompt.search.source import CandidateSource

__all__ = ["CandidateSource", "build_candidates", "embed_candidates", "rewrite"]
