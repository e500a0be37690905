"""``bestprompt ui``: runs in the browser, live; needs the extra ``ui``.

It reads ledgers and writes none: a run that is started, stopped or continued here is a process of the command line.
"""
