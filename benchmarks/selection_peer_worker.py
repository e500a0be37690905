"""Runs in the peers' environment (torch, botorch, optuna): the same problems, answered from the same streams.

BoTorch gets, per candidate, the mean of its answers and the variance of that mean (a pooled estimate); all candidates
are its discrete choice set. Its hyperparameters are fitted at a geometric schedule and it is conditioned on every
answer in between; it recommends the candidate with the highest posterior mean. Optuna gets the candidate's number as a
categorical parameter and recommends the parameters of its best trial, as documented.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from selection_families import Problem, make_problem


def optuna_tpe(problem: Problem, budget: int, seed: int) -> int:
    """Optuna's default sampler over a categorical parameter."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    counts = np.zeros(len(problem.truth), dtype=int)
    names = list(range(len(problem.truth)))
    for _ in range(budget):
        trial = study.ask()
        candidate = trial.suggest_categorical("candidate", names)
        study.tell(trial, problem.score(candidate, counts[candidate]))
        counts[candidate] += 1
    return int(study.best_params["candidate"])


class _Model:
    """A SingleTaskGP over the candidates' means, refitted at a geometric schedule."""

    def __init__(self, problem: Problem) -> None:
        import torch

        torch.set_num_threads(1)
        Z = problem.Z
        self.unit = torch.tensor((Z - Z.min(0)) / np.maximum(Z.max(0) - Z.min(0), 1e-12))
        self.counts = np.zeros(len(Z))
        self.sums = np.zeros(len(Z))
        self.squares = np.zeros(len(Z))
        self.problem, self.hyperparameters, self.next_fit = problem, None, 0

    def look(self, candidate: int) -> None:
        value = self.problem.score(candidate, int(self.counts[candidate]))
        self.counts[candidate] += 1
        self.sums[candidate] += value
        self.squares[candidate] += value * value

    def fit(self):
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        seen = np.flatnonzero(self.counts)
        means = self.sums[seen] / self.counts[seen]
        within = float((self.squares[seen] - self.sums[seen] ** 2 / self.counts[seen]).sum())
        noise = max((within + 4 * 0.2) / (float((self.counts[seen] - 1).sum()) + 4), 1e-3)
        model = SingleTaskGP(
            self.unit[seen], torch.tensor(means)[:, None], torch.tensor(noise / self.counts[seen])[:, None]
        )
        total = int(self.counts.sum())
        if self.hyperparameters is None or total >= self.next_fit:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            covariance = {k: v for k, v in model.state_dict().items() if "covar_module" in k or "mean_module" in k}
            self.hyperparameters, self.next_fit = covariance, int(total * 1.25) + 3
        else:
            model.load_state_dict({**model.state_dict(), **self.hyperparameters})
        return model.eval(), seen


def botorch_contestant(problem: Problem, budget: int, seed: int, acquisition: str) -> int:
    """GP + UCB (β = 1.5² as in BoTorch's parametrisation) or qLogNoisyExpectedImprovement."""
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.sampling import SobolQMCNormalSampler

    torch.manual_seed(seed)
    model = _Model(problem)
    rng = np.random.default_rng(seed)
    for candidate in rng.permutation(len(problem.truth))[: min(10, budget // 5)]:
        model.look(int(candidate))
    for _ in range(budget - int(model.counts.sum())):
        gp, seen = model.fit()
        with torch.no_grad():
            if acquisition == "ucb":
                worth = UpperConfidenceBound(gp, beta=2.25)(model.unit[:, None, :])
            else:
                # Its exact posterior over all baseline points is cubic in them: keep the twenty most promising.
                best = seen[np.argsort(-gp.posterior(model.unit[seen]).mean[:, 0].numpy())[:20]]
                sampler = SobolQMCNormalSampler(torch.Size([32]), seed=seed)
                worth = qLogNoisyExpectedImprovement(
                    gp, X_baseline=model.unit[best], sampler=sampler, prune_baseline=False
                )(model.unit[:, None, :])
        model.look(int(worth.argmax()))
    gp, _ = model.fit()
    with torch.no_grad():
        return int(gp.posterior(model.unit).mean[:, 0].argmax())


def main() -> None:
    """Answers jobs until the input ends."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        job = json.loads(line)
        problem = make_problem(job["family"], job["n"], job["seed"])
        if job["name"] == "Optuna TPE":
            candidate = optuna_tpe(problem, job["budget"], job["seed"])
        else:
            kind = "ucb" if "UCB" in job["name"] else "nei"
            candidate = botorch_contestant(problem, job["budget"], job["seed"], kind)
        print(json.dumps({"candidate": candidate}), flush=True)


if __name__ == "__main__":
    main()
