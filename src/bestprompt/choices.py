"""The names a user chooses from, in one place: settings must know them before anything that is slow to load."""

from __future__ import annotations

from typing import Literal

Mode = Literal["default", "paper"]
Pairs = Literal["common", "independent"]
Repeats = Literal["never", "same-item", "new-item"]
NextItem = Literal["most-telling", "in-turn"]
Policy = Literal["auto", "random"]
Start = Literal["auto", "examples", "random", "space-filling"]
SurrogateName = Literal["auto", "average", "none", "gp", "gp-rank", "blr", "bnn", "vae"]
AcquisitionName = Literal["auto", "m-ucb", "ucb", "ei", "thompson", "top-two"]
MaximizerName = Literal["auto", "argmax", "reinforce"]
TuningName = Literal["grid", "ranges"]
VarianceName = Literal["kriging", "linear", "pooled"]
RefinementMode = Literal["off", "default", "m-ucb-r", "psk-ei"]
