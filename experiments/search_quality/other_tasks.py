"""Example prompts of tasks that are not bundled: settings of the search stage are chosen on these, then left alone.

Written like the bundled ones: some good, some vague, a title, a demonstration. The words say what is on-task, in the
notation of ``measures.on_its_task``.
"""

OTHER_TASKS = {
    "sentiment": [
        "Is this review positive or negative?",
        "Decide whether the customer liked the product. Answer with one word.",
        "Classify the sentiment of the following review.",
        "Tell me about this review.",
        "What does the writer feel?",
        "Label the text as positive, negative or neutral.",
        "Sentiment:",
        "Read the comment and say if the opinion is good or bad.",
        "Rate it.",
        "Judge the tone of this message.",
    ],
    "opposites": [
        "Write the opposite of the given word.",
        "What is an antonym of this word?",
        "Give one word that means the opposite.",
        "Change the word.",
        "Find the antonym and output nothing else.",
        "Which word has the contrary meaning?",
        "Opposite:",
        "Name a word with the opposite meaning, for example: hot -> cold",
        "Explain the meaning of the word.",
        "Reply with the antonym only.",
    ],
    "capitals": [
        "Name the capital of the country.",
        "Which city is the seat of government of this country?",
        "What is the capital city? Answer with the name only.",
        "Tell me about this country.",
        "Give the capital of the following country.",
        "Write down a city.",
        "Capital:",
        "Look at the name of the country and state its capital.",
        "Which city is the largest one there?",
        "Return the name of the capital and nothing else.",
    ],
    "plural": [
        "Write the plural of the noun.",
        "What is the plural form of this word?",
        "Make the word plural. Answer with one word only.",
        "Plural:",
        "Change the noun so that it means more than one.",
        "Give the plural of the given noun and nothing else.",
        "Tell me more than one of these.",
        "Turn the singular noun into its plural form, for example: cat -> cats",
        "How do you write this word when there are many?",
        "Add the right ending to the word.",
    ],
    "weekday": [
        "On which day of the week does this date fall?",
        "Name the weekday of the given date.",
        "What day is it?",
        "Find out which day of the week it was. Answer with one word.",
        "Look at the date and write the weekday.",
        "Day of the week:",
        "Work out the weekday for the following date and output nothing else.",
        "Tell me about this date.",
        "State whether the date is a Monday, a Tuesday or another day.",
        "Calculate the day.",
    ],
}
ON_TASK = {
    "sentiment": "sentiment positiv negativ feel opinion tone liked review emotion mood attitude",
    "opposites": "opposite antonym contrary meaning",
    "capitals": "capital city country",
    "plural": "plural noun many more ending",
    "weekday": "day date week",
}
ODD_EXAMPLES = {
    "one": ["Sort the words in alphabetical order."],
    "three, lower case": ["sort the words", "put these in order from a to z", "alphabetize this list please"],
    "three, French": [
        "Trie les mots par ordre alphabétique.",
        "Quel mot vient en premier ?",
        "Écris la liste dans l'ordre.",
    ],
    "three, emoji": ["Sort the words 🎉", "🔤 Which word comes first?", "List the words from A to Z ✅"],
    "3,000 characters": [
        "You are a careful assistant who works with long lists of words. " * 46
        + "Sort the words in alphabetical order.",
        "Put the following words in order.",
    ],
    "Chinese": ["按字母顺序排列下面的所有单词并且只输出结果不要解释。"],
    "empty": ["Sort the words.", ""],
}
