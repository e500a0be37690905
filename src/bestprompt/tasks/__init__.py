"""Tasks: pairs, example prompts, a score and a frame; six bundled, any number from your files."""

from bestprompt.tasks.base import Task
from bestprompt.tasks.demonstrations import can_be_shown, demonstrated
from bestprompt.tasks.floor import floor_warning, separation
from bestprompt.tasks.library import names
from bestprompt.tasks.opening import bundled, from_table
from bestprompt.tasks.prompt_file import PromptFile, read_prompt_file, read_prompts
from bestprompt.tasks.spec import DEFAULT_TEMPLATE, Splits, TaskSpec

__all__ = [
    "DEFAULT_TEMPLATE",
    "PromptFile",
    "Splits",
    "Task",
    "TaskSpec",
    "bundled",
    "can_be_shown",
    "demonstrated",
    "floor_warning",
    "from_table",
    "names",
    "read_prompt_file",
    "read_prompts",
    "separation",
]
