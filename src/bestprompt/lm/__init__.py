"""Language models behind one protocol: in process (``embedded``), over HTTP (``openai``), or a Python function.

``cached`` keeps the answers of any of them on disk.

These modules import their engines and clients only when a model is made, so that ``import bestprompt`` stays quick.
The imports below must stay eager: they bind each name to the constructor rather than to the submodule it lives in.
"""

from bestprompt.lm.back_ends import BACK_ENDS, open_model
from bestprompt.lm.cached import cached
from bestprompt.lm.embedded import embedded
from bestprompt.lm.function import function
from bestprompt.lm.openai import openai
from bestprompt.lm.settings import BackEnd, ModelSettings
from bestprompt.lm.several import Several

__all__ = ["BACK_ENDS", "BackEnd", "ModelSettings", "Several", "cached", "embedded", "function", "open_model", "openai"]
