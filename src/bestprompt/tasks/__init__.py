"""Tasks: pairs, example prompts, a score and a frame; six bundled, any number from your files."""

from bestprompt.tasks.base import DEFAULT_TEMPLATE, Splits, Task
from bestprompt.tasks.files import from_table
from bestprompt.tasks.floor import floor_warning, separation
from bestprompt.tasks.library import bundled, names
from bestprompt.tasks.prompt_file import read_prompts

__all__ = [
    "DEFAULT_TEMPLATE",
    "Splits",
    "Task",
    "bundled",
    "floor_warning",
    "from_table",
    "names",
    "read_prompts",
    "separation",
]
