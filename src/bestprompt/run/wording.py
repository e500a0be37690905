"""How much a prompt's score depends on its exact wording: input uncertainty (paper, section "Refinement").

Notation (paper symbol → name):
    X̂           random latent vector, N(X_n, s² Σ_p)           → ``scale`` is s
    Σ_p          sample covariance of the set's latent vectors  → the search stage's own perturbation
    μ̂, σ̂²       PSK prediction at a vector                     → ``predicted``, ``std``
    E v, Var v   over X̂, by the law of total variance           → ``mean``, ``of_model``² + ``of_wording``²

The model is refinement's, fitted to everything the run has seen; it needs no language model and no call. A prompt whose
``mean`` falls far below ``predicted`` is good by its wording alone; one with a large ``of_model`` was hardly tried.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bestprompt.errors import ConfigError, LedgerError
from bestprompt.execution import Questions
from bestprompt.kriging.projection import Principal
from bestprompt.ledger import Ledger
from bestprompt.refinement.evidence import observed_vectors
from bestprompt.rng import stream
from bestprompt.run.explorer import refiner_config
from bestprompt.run.parts import selector_config
from bestprompt.run.replay import standing
from bestprompt.run.settings import Settings, recorded_settings
from bestprompt.selection import SelectionState, Selector
from bestprompt.selection.core.state import fold
from bestprompt.types import FloatArray, Observation

SCALE = 0.25
FEWEST = 6  # evaluated prompts: with fewer nothing can be held out when the model is trained


@dataclass(frozen=True, slots=True)
class WordingUncertainty:
    """What the model predicts of a prompt, and of wordings around it.

    Attributes:
        prompt: The text.
        estimate: Its score as the run estimates it.
        predicted: Its score as predicted from its latent vector, μ̂(X_n).
        std: The uncertainty of that, σ̂(X_n).
        mean: The mean over wordings around it, E v(X̂).
        of_model: Standard deviation of v(X̂) for what the model does not know, √E σ̂²(X̂).
        of_wording: For the wording, √Var μ̂(X̂).
    """

    prompt: str
    estimate: float
    predicted: float
    std: float
    mean: float
    of_model: float
    of_wording: float

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def wording_uncertainty(ledger: Ledger, top: int = 10, scale: float = SCALE) -> list[WordingUncertainty]:
    """The ``top`` prompts of a run, finished or not, best first.

    Args:
        ledger: Its record.
        top: How many prompts.
        scale: s, how far wordings move, in units of the set's own spread.

    Raises:
        ConfigError: ``top`` or ``scale`` cannot be used.
        LedgerError: The run has no latent vectors, or has evaluated too few prompts.
    """
    if top < 1 or not 0.0 < scale <= 1.0:
        raise ConfigError(f"top must be at least 1 and scale in (0, 1], not {top} and {scale:g}")
    found, settings = standing(ledger), recorded_settings(ledger.facts())
    X, folder = found.candidates.X, ledger.path.parent
    if X is None:
        raise LedgerError(
            f"{folder} has no latent vectors: its prompts were given, not invented. Run with --latent, or --refine."
        )
    questions = Questions.of(ledger.facts())
    state = _observed_state(ledger, settings, questions, found.candidates.Z)
    if int((state.counts > 0).sum()) < FEWEST:
        raise LedgerError(f"{folder} has evaluated fewer than {FEWEST} prompts, too few to learn wordings from.")
    config = refiner_config(settings, questions)
    principal = Principal.of(X, config.recipe.inputs)
    data, _ = observed_vectors(X, principal.rows, state, config.common)
    fitted = config.recipe.fit(principal, data, stream(settings.seed, "project", len(state)))
    root = scale * (X - X.mean(axis=0)) / np.sqrt(len(X))
    best = np.argsort(-found.choice.estimates, kind="stable").tolist()
    best = [found.choice.candidate, *(n for n in best if n != found.choice.candidate)][:top]
    mean, std = fitted.predict(X[best])
    around = [fitted.input_uncertainty(X[n], root, stream(settings.seed, "wording", n)) for n in best]
    return [
        WordingUncertainty(
            found.candidates.prompts[n],
            float(found.choice.estimates[n]),
            float(mean[i]),
            float(np.sqrt(std[i] ** 2 + fitted.nugget)),
            around[i][0],
            float(np.sqrt(around[i][1] + fitted.nugget)),
            float(np.sqrt(around[i][2])),
        )
        for i, n in enumerate(best)
    ]


def _observed_state(ledger: Ledger, settings: Settings, questions: Questions, Z: FloatArray) -> SelectionState:
    """Everything a run has seen, in the order it was recorded."""
    scored = [(e.candidate, e.replication, e.score) for e in ledger.entries() if e.final and e.score is not None]
    selector = Selector(Z, selector_config(settings, questions, max(len(scored), 1)))
    return fold(selector.initial(), [Observation(*each) for each in scored])
