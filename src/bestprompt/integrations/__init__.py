"""bestprompt inside other tools, each an extra of its own: nothing here is imported until it is asked for.

======================================  ==========================  ==============================================
module                                  ``pip install``             what it is
======================================  ==========================  ==============================================
:mod:`~bestprompt.integrations.dspy`    ``'bestprompt[dspy]'``      an optimizer for DSPy programs
:mod:`~bestprompt.integrations.gepa`    ``'bestprompt[gepa]'``      judges candidates by the adapter of a GEPA user
:mod:`~bestprompt.integrations.mlflow`  ``'bestprompt[mlflow]'``    logs runs to MLflow
:mod:`~bestprompt.integrations.promptfoo`  ``'bestprompt[promptfoo]'``  reads and writes promptfoo's files
:mod:`~bestprompt.integrations.pytest_plugin`  nothing              the fixture ``bestprompt_check``
======================================  ==========================  ==============================================
"""
