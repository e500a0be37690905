"""Prompts that a model writes while a run goes on: one module per way of asking, one for what is refused."""

from bestprompt.proposals.base import Context, Refused, Shown, Source, Written
from bestprompt.proposals.propose import propose, request_for
from bestprompt.proposals.reflection import Reflection
from bestprompt.proposals.rewriting import Crossover, Restyling

SOURCES: tuple[Source, ...] = (Reflection(), Restyling(), Crossover())

__all__ = [
    "SOURCES",
    "Context",
    "Crossover",
    "Reflection",
    "Refused",
    "Restyling",
    "Shown",
    "Source",
    "Written",
    "propose",
    "request_for",
]
