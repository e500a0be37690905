"""The six tasks of the paper, made from facts by code: word lists, rhyme families, body masses, number words.

Every generator is a function of its difficulty parameters and a seed; the same call gives the same pairs everywhere.
Inputs never repeat, and where the answer is one of several options its position is balanced.
"""

from bestprompt.tasks.generators.quantities import counting_objects, largest_animal, number_words, spell
from bestprompt.tasks.generators.words import first_letter, rhymes, word_sorting

__all__ = ["counting_objects", "first_letter", "largest_animal", "number_words", "rhymes", "spell", "word_sorting"]
