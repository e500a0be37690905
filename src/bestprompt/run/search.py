"""The search step of a run: what is given, what the model writes, and what is found around it become one set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bestprompt.errors import SearchError
from bestprompt.execution import Spend
from bestprompt.latent import Autoencoder, TextAutoencoder
from bestprompt.latent.sentences import varied_sentences
from bestprompt.ledger import Ledger
from bestprompt.lm.several import names_of
from bestprompt.run.demonstrations import add_demonstrations
from bestprompt.run.given import Given, given_prompts
from bestprompt.run.observer import Observer
from bestprompt.run.parts import fluency_of
from bestprompt.run.settings import Settings
from bestprompt.run.writing import write_prompts
from bestprompt.search import CandidateSource, build_candidates, embed_candidates
from bestprompt.search.across import across
from bestprompt.search.extension import tuned_on
from bestprompt.search.filters import SIMILARITIES
from bestprompt.tasks import Task
from bestprompt.types import ADDED, LanguageModel, Pair, SoftPromptSet


def search(
    task: Task,
    settings: Settings,
    lm: LanguageModel,
    ledger: Ledger,
    limits: Spend,
    candidates: Given,
    observer: Observer,
    autoencoder: TextAutoencoder | None,
    shown: tuple[Pair, ...] = (),
) -> SoftPromptSet:
    """The candidate set of a run, stored in ``ledger``: searched for if it is not there yet, then as it is stored.

    Args:
        task: The task.
        settings: Of the run.
        lm: The model that writes candidates and judges how fluent others are.
        ledger: The record.
        limits: Of the budget that the run was started with, even if it was raised before the candidates were there.
        candidates: What the caller gives.
        observer: Is told how the search goes.
        autoencoder: Where candidates are invented; the shipped one if left out.
        shown: Pairs that judge nobody, for demonstrations.
    """
    if ledger.candidates() is None:
        if settings.search.rewrites:
            observer.stage("rewriting the examples", None)
        written = write_prompts(task, settings, lm, ledger, limits, candidates, autoencoder)
        invents = settings.search.source == "latent"
        observer.stage(
            "searching" if invents else "reading the prompts", settings.search.candidates if invents else None
        )
        made = build_prompt_set(
            task, settings, lm, candidates, lambda done, _total: observer.advance(done), autoencoder, written
        )
        made = add_demonstrations(with_shortfall(made, written, settings), task, shown, settings)
        made = across(made, names_of(lm))
        if made.details.get("shortfall"):
            observer.warn(made.details["shortfall"])
        ledger.set_candidates(made)
    # As stored, with the digits that are stored, so that a run that is continued sees the same numbers.
    stored = ledger.candidates()
    assert stored is not None, "it was stored a moment ago"
    return stored


def build_prompt_set(
    task: Task,
    settings: Settings,
    lm: LanguageModel,
    candidates: Given = (),
    progress: Callable[[int, int], None] | None = None,
    autoencoder: TextAutoencoder | None = None,
    written: Sequence[str] = (),
) -> SoftPromptSet:
    """The candidate set: what is given and ``written`` and, unless ``candidates`` fix it, what is found around it."""
    prompts, search = given_prompts(task, settings, candidates), settings.search
    if isinstance(candidates, SoftPromptSet):
        # What another run added on its way is one of the set's own prompts here.
        return replace(candidates, sources=tuple("file" if s in ADDED else s for s in candidates.sources))
    for prompt in written:
        prompts.setdefault(prompt, "rewrite")
    if isinstance(candidates, CandidateSource):
        missing = max(search.candidates - len(prompts), 0)
        for prompt in candidates.propose(list(prompts), missing, settings.seed)[:missing]:
            prompts.setdefault(prompt.strip(), "proposed")
    enough = bool(candidates) or search.candidates <= len(prompts) or settings.refining == "psk-ei"
    if search.source != "latent" or enough:
        given = embed_candidates(list(prompts), dim=search.dimension, sources=list(prompts.values()))
        return given if settings.refining == "off" else _with_latent_vectors(given, search.dimension, autoencoder)
    return build_candidates(
        [prompt for prompt, source in prompts.items() if source == "example"],
        n=search.candidates,
        seed=settings.seed,
        mode=search.mode,
        similarity=SIMILARITIES[search.similarity],
        bounds=(search.r1, search.r2),
        dim=search.dimension,
        given=_by_source(prompts),
        fluency=fluency_of(lm),
        progress=progress,
        autoencoder=autoencoder,
    )


def _by_source(prompts: Mapping[str, str]) -> dict[str, list[str]]:
    """Source → its prompts, of all that are no examples."""
    found: dict[str, list[str]] = {}
    for prompt, source in prompts.items():
        if source != "example":
            found.setdefault(source, []).append(prompt)
    return found


def with_shortfall(candidates: SoftPromptSet, written: Sequence[str], settings: Settings) -> SoftPromptSet:
    """``candidates`` with a word about the variants that were asked for and not written."""
    asked, found = settings.search.rewrites, len(written)
    if found >= asked:
        return candidates
    missing = (
        f"The language model wrote {found} of the {asked} variants asked for; its other answers repeated a prompt, "
        "failed, or did not fit the budget or the latent space."
    )
    sentences = [missing, *filter(None, [candidates.details.get("shortfall")])]
    return replace(candidates, details={**candidates.details, "shortfall": " ".join(sentences)})


def _with_latent_vectors(given: SoftPromptSet, dim: int, autoencoder: TextAutoencoder | None) -> SoftPromptSet:
    """``given`` in the latent space, where refinement can move on from it; as it is, if it cannot be put there."""
    base = autoencoder or Autoencoder.pretrained()
    try:
        varied = [sentence for _, sentence, _ in varied_sentences(given.prompts, base.fits)]
        tuned = tuned_on(varied, given.sources, base)
    except SearchError:
        return given
    return embed_candidates(given.prompts, dim=dim, sources=given.sources, autoencoder=tuned)
