"""How much of a score's variance is the prompt's, the item's, the model's and the judge's.

Notation (symbol → name, shape):
    y_nmaj = μ + α_n + b_m + c_nm + e_nma + g_nmaj      j-th judgement of the a-th answer to item m under prompt n
    σ_α², σ_b², σ_c², σ_e², σ_g²                        prompt, item, their interaction, model, judge
    ȳ_nma, J_nma                                        mean judgement of an answer and how many      → ``Level``
    x_nm, A_nm                                          mean over answers of a cell and how many      → ``Level``
    w_nm = σ_e²/A_nm + σ_g² Σ_a (1/J_nma)/A_nm²         what model and judge leave in a cell's mean
    H                                                   projection of cells onto prompt and item means  → ``leverage``
    V = cov(x̄_1 … x̄_N)                                  of the prompts' means, prompts held fixed

What can be told apart depends on what was repeated. Two judgements of one answer differ by the judge alone; two answers
to one item under one prompt by model and judge; cells of one prompt by item and interaction, and so on:

    σ_g² from judgements within answers,   σ_e² from answers within cells less σ_g² mean(1/J),
    σ_c² from what is left of the cells when prompt and item means are fitted, on C − rank H degrees of freedom,
    σ_b² + σ_c² from cells within prompts,   σ_α² from the prompts' means, all of equal weight, less what V adds,

each less the noise w in it. All are unbiased for any pattern of missing cells that does not depend on the scores.
Selection's does: it asks good prompts more often. That is why no step compares cells of different prompts before the
prompts' means are taken out, or weighs prompts by their cells: good prompts are alike, and their many cells would make
prompts in general look alike. What remains is mild, as unlucky prompts are dropped. Where nothing was repeated,
neighbours in the model cannot be separated and are reported together, e.g. ``model + judge``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bestprompt.errors import TaskError
from bestprompt.types import FloatArray, IntArray

PARTS = ("prompt", "item", "interaction", "model", "judge")


@dataclass(frozen=True, slots=True)
class Level:
    """Groups of values: their unweighted means (G,), sizes (G,), pooled sum of squares, and degrees of freedom."""

    means: FloatArray
    sizes: IntArray
    squares: float
    freedom: int

    @classmethod
    def of(cls, values: FloatArray, groups: IntArray) -> Level:
        """``values`` (t,) grouped by ``groups`` (t,) with labels 0 … G − 1, each present."""
        sizes = np.bincount(groups)
        means = np.bincount(groups, values) / sizes
        return cls(means, sizes, float(((values - means[groups]) ** 2).sum()), int((sizes - 1).sum()))


def variance_parts(
    candidates: IntArray,
    items: IntArray,
    answers: IntArray,
    scores: FloatArray,
    random_model: bool = True,
    random_judge: bool = True,
) -> dict[str, float]:
    """Variance components by name; names of those that cannot be told apart are joined by `` + ``.

    Args:
        candidates: (t,) prompt of each judgement.
        items: (t,) item, i.e. pair, of each judgement.
        answers: (t,) which answer was judged: equal labels within a prompt and item are judgements of one answer.
        scores: (t,) the judgements.
        random_model: ``False`` at temperature 0, where equal questions get equal answers.
        random_judge: ``False`` for a score that is computed.

    Raises:
        TaskError: The arrays do not match, or hold fewer than two prompts or items.
    """
    if not candidates.shape == items.shape == answers.shape == scores.shape:
        raise TaskError("a variance split needs one prompt, item and answer for each score")
    cells, cell_of_score = np.unique(np.stack([candidates, items]), axis=1, return_inverse=True)
    if np.unique(cells[0]).size < 2 or np.unique(cells[1]).size < 2:
        raise TaskError("a variance split needs at least two prompts and two items")
    pairs, answer_of_score = np.unique(np.stack([cell_of_score, answers]), axis=1, return_inverse=True)
    judged = Level.of(np.asarray(scores, dtype=np.float64), answer_of_score)
    answered = Level.of(judged.means, pairs[0])

    judge = judged.squares / judged.freedom if judged.freedom else None
    judge = judge if random_judge else 0.0
    spread = 1.0 / judged.sizes
    per_cell = np.bincount(pairs[0], spread)
    both = answered.squares / answered.freedom if answered.freedom else None  # model, and what of the judge is left
    model: float | None = None if random_model else 0.0
    if random_model and judge is not None and both is not None:
        share = float(((answered.sizes - 1) / answered.sizes * per_cell).sum()) / answered.freedom
        model = both - judge * share

    def crossed(of_model: float, of_judge: float) -> tuple[float, float, float]:
        """σ_α², σ_b² and what is left, cells having noise w."""
        noise = of_model / answered.sizes + of_judge * per_cell / answered.sizes**2
        return _crossed(cells[0], cells[1], answered.means, noise)

    fixed = [name for name, varies in (("model", random_model), ("judge", random_judge)) if not varies]
    values: tuple[float, ...]
    if model is not None and judge is not None:
        values = (*crossed(model, judge), model, judge)
        names = ["interaction", "model", "judge"]
    elif judge is not None:  # answers never repeated: their randomness stays with the interaction
        values, names = (*crossed(0.0, judge), judge), ["interaction + model", "judge"]
    elif both is not None:  # answers repeated, judged once each
        values, names = (*crossed(both, 0.0), both), ["interaction", "model + judge"]
    else:
        values, names = crossed(0.0, 0.0), ["interaction + model + judge"]
    clean = [" + ".join(part for part in name.split(" + ") if part not in fixed) for name in names]
    return {name: float(value) for name, value in zip(["prompt", "item", *clean], values, strict=True) if name}


def variance_shares(parts: dict[str, float]) -> dict[str, float]:
    """The same as shares of the total; an estimate below zero counts as none."""
    kept = {name: max(part, 0.0) for name, part in parts.items()}
    total = sum(kept.values())
    return {name: part / total if total > 0.0 else 0.0 for name, part in kept.items()}


def _crossed(prompts: IntArray, items: IntArray, x: FloatArray, noise: FloatArray) -> tuple[float, float, float]:
    """σ_α², σ_b² and σ_c² from cells ``x`` (C,) of a two-way table with gaps, each with known ``noise`` (C,).

    Each step is a quadratic form in x, whose mean is a known sum of the components and of w.
    """
    rows, columns = (np.unique(labels, return_inverse=True)[1] for labels in (prompts, items))
    x = x - x.mean()  # equal cells then leave exactly nothing
    met = np.zeros((rows.max() + 1, columns.max() + 1))
    met[rows, columns] = 1.0
    n, size = met.shape[0], met.sum(axis=1)
    gram = np.block([[np.diag(size), met], [met.T, np.diag(met.sum(axis=0))]])
    inverse = np.linalg.pinv(gram, rcond=1e-9, hermitian=True)
    means = inverse @ np.concatenate([np.bincount(rows, x), np.bincount(columns, x)])
    places = (rows, n + columns)
    leverage = sum(inverse[i, j] for i in places for j in places)
    left = x - means[places[0]] - means[places[1]]
    freedom = x.size - round(float(np.sum(leverage)))
    if n < 2 or freedom < 1:
        raise TaskError("a variance split needs prompts that met some of the same items, two each at least")
    interaction = float(left @ left - noise @ (1.0 - leverage)) / freedom

    cells = Level.of(x, rows)
    within = (cells.squares - float(noise @ (1.0 - 1.0 / size[rows]))) / cells.freedom
    item = within - interaction

    shared = item * (met @ met.T) / np.outer(size, size)
    own = np.diag(shared) + interaction / size + np.bincount(rows, noise) / size**2
    between = (float(shared.sum()) - float(np.trace(shared))) / (n * (n - 1))
    return float(cells.means.var(ddof=1) - own.mean()) + between, item, interaction
