"""Scores in [0, 1] of what a model wrote, against one or several references."""

from bestprompt.scoring.answers import Choice, Letter, Number, NumberWords, Positions
from bestprompt.scoring.base import TextScorer, content_hash
from bestprompt.scoring.build import KINDS, ScorerSpec, build_scorer
from bestprompt.scoring.function import FunctionScorer
from bestprompt.scoring.judge import Judge
from bestprompt.scoring.labels import Label
from bestprompt.scoring.lexical import Contains, EditSimilarity, Exact, Regex, RougeL, TokenF1
from bestprompt.scoring.normalise import Normalisation
from bestprompt.scoring.proposal import ScoreProposal, propose_length, propose_score
from bestprompt.scoring.vector import EmbeddingCosine, TfCosine, TfIdfCosine
from bestprompt.scoring.word2vec import Word2VecCosine

__all__ = [
    "KINDS",
    "Choice",
    "Contains",
    "EditSimilarity",
    "EmbeddingCosine",
    "Exact",
    "FunctionScorer",
    "Judge",
    "Label",
    "Letter",
    "Normalisation",
    "Number",
    "NumberWords",
    "Positions",
    "Regex",
    "RougeL",
    "ScoreProposal",
    "ScorerSpec",
    "TextScorer",
    "TfCosine",
    "TfIdfCosine",
    "TokenF1",
    "Word2VecCosine",
    "build_scorer",
    "content_hash",
    "propose_length",
    "propose_score",
]
