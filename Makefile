# Everything runs from .venv, which every target creates when it is missing or older than what says what belongs in it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
INSTALL := -m pip install --quiet --disable-pip-version-check --prefer-binary

.DEFAULT_GOAL := help
.PHONY: help demo test quick test-ray test-browser test-integrations test-portable test-lowest constraints check lint types layers clean task-signal throughput autoencoder search-quality value selection calibration check-calibration few-pairs peers docs tables experiments figures torture

# The larger model of some experiments: any chat GGUF file.
LARGER_MODEL ?=

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "bestprompt needs Python 3.11 or newer (set PYTHON=...)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## choose a prompt for a bundled task with the embedded model, print it and write the report
	rm -rf runs/demo
	$(BIN)/bestprompt run counting-objects --latent --candidates 40 --budget 240 --output runs/demo

test: $(STAMP)  ## run all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

quick: $(STAMP)  ## run the tests that are not slow, of every package
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

test-ray: $(STAMP)  ## install Ray and run the tests on a real cluster on this machine (minutes)
	$(BIN)/python $(INSTALL) -c constraints.txt -e '.[dev,ray]'
	$(BIN)/python -m pytest tests/integration/test_ray.py tests/lm/test_fleet.py

# Debian and its kin have a package; elsewhere BESTPROMPT_BROWSER names a Chromium or Chrome that is there.
test-browser: $(STAMP)  ## run the tests of report and ui in a real browser, after installing one where that may be done
	@command -v chromium chromium-browser google-chrome >/dev/null || test -n "$$BESTPROMPT_BROWSER" || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium; } || \
	  { echo "No browser was found, and none can be installed from here. Install Chromium, or set BESTPROMPT_BROWSER."; exit 1; }
	$(BIN)/python -m pytest tests/browser

# In an environment of its own, because these packages want other versions than constraints.txt has. promptfoo is tried
# where npm is and its database can be compiled (PROMPTFOO=… names another one); its own downloads are not run.
INTEGRATIONS := $(VENV)-integrations
PROMPTFOO ?= $(abspath $(INTEGRATIONS))/npm/node_modules/.bin/promptfoo

test-integrations:  ## install DSPy, GEPA, MLflow and promptfoo and run the tests of bestprompt inside them (minutes)
	test -x $(INTEGRATIONS)/bin/python || $(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python $(INSTALL) -c constraints-integrations.txt -e '.[dev,dspy,gepa,mlflow,promptfoo]'
	test -x $(PROMPTFOO) || ! command -v npm >/dev/null || \
	  { npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(INTEGRATIONS)/npm promptfoo@0.120.27 && \
	    npm rebuild --silent --prefix $(INTEGRATIONS)/npm --build-from-source better-sqlite3; } || \
	  { echo "promptfoo cannot be built here; its tests are left out"; rm -rf $(INTEGRATIONS)/npm; }
	PROMPTFOO=$$(test -x $(PROMPTFOO) && echo $(PROMPTFOO)) $(INTEGRATIONS)/bin/python -m pytest tests/integrations tests/scoring/test_assertions.py

test-portable: $(STAMP)  ## run all tests on other instruction sets, threads and seeds (hours; results in benchmarks/results)
	$(BIN)/python benchmarks/portable.py

# pip knows no lowest versions, so every bound a>=b becomes the constraint a==b: a bound that cannot be met is an error.
test-lowest:  ## run all tests with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear $(VENV)-lowest
	sed -nE 's/.*"([A-Za-z0-9-]+)>=([^"]+)".*/\1==\2/p' pyproject.toml > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python $(INSTALL) -c $(VENV)-lowest/constraints.txt -e '.[dev]'
	$(VENV)-lowest/bin/python -m pytest -n 2 --dist worksteal

constraints: $(STAMP)  ## move constraints.txt to the newest versions; `make check` says whether they can stay
	$(BIN)/python $(INSTALL) --upgrade --upgrade-strategy eager -e '.[dev]'
	{ sed '/^[^#]/,$$d' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable; } > $(VENV)/constraints.txt
	mv $(VENV)/constraints.txt constraints.txt

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

check: lint types layers test  ## lint, types, layering and all tests

throughput: $(STAMP)  ## time the embedded engine, and a run against a bare loop (results in benchmarks/results)
	$(BIN)/python benchmarks/lm_throughput.py
	$(BIN)/python benchmarks/run_overhead.py

task-signal: $(STAMP)  ## measure which tasks separate prompts; LARGER_MODEL=file.gguf adds a second model
	$(BIN)/python experiments/task_signal/run.py
	$(if $(LARGER_MODEL),$(BIN)/python experiments/task_signal/run.py --model $(LARGER_MODEL))

autoencoder: $(STAMP)  ## train the text autoencoder further (hours; checkpoints are kept)
	$(BIN)/python -m bestprompt.latent.training.train --steps 60000

search-quality: $(STAMP)  ## measure the candidates that the search stage finds
	$(BIN)/python experiments/search_quality/run.py

value: $(STAMP)  ## measure what searching and refining gain on real models; LARGER_MODEL=file.gguf adds a second one
	$(BIN)/python experiments/value/run.py
	$(BIN)/python experiments/value/small_sets.py --seeds 0,1,2,3
	$(if $(LARGER_MODEL),$(BIN)/python experiments/value/run.py --model $(LARGER_MODEL))

selection: $(STAMP)  ## compare selection procedures on synthetic problems (hours)
	$(BIN)/python benchmarks/selection.py run --group ours
	$(BIN)/python benchmarks/selection.py run --group oracle
	$(BIN)/python benchmarks/selection.py run --group blind
	$(BIN)/python benchmarks/selection.py run --group classic
	$(BIN)/python benchmarks/selection.py table

calibration: $(STAMP)  ## check that stated probabilities and intervals are true
	$(BIN)/python benchmarks/calibration.py

check-calibration: $(STAMP)  ## measure false alarms, power and calls of bestprompt check (an hour; continued where it ended)
	$(BIN)/python benchmarks/check.py run
	$(BIN)/python benchmarks/check.py table

few-pairs: $(STAMP)  ## check verdicts and calls where labelled pairs are few (hours; continued where it ended)
	$(BIN)/python benchmarks/few_pairs.py run
	$(BIN)/python benchmarks/few_pairs.py run --group former
	$(BIN)/python benchmarks/few_pairs.py table

peers: $(STAMP)  ## compare with other prompt optimisers through one metered server (days; continued where it ended); LARGER_MODEL=file.gguf adds a second model
	$(BIN)/python benchmarks/peers/environments.py
	$(BIN)/python benchmarks/peers/scripted.py
	$(BIN)/python benchmarks/peers/signal_of_tasks.py
	$(BIN)/python benchmarks/peers/grid.py
	$(if $(LARGER_MODEL),$(BIN)/python benchmarks/peers/signal_of_tasks.py --model $(LARGER_MODEL))
	$(if $(LARGER_MODEL),$(BIN)/python benchmarks/peers/grid.py --model $(LARGER_MODEL))
	$(BIN)/python benchmarks/peers/page.py

docs: $(STAMP)  ## build the documentation into site/
	$(BIN)/python $(INSTALL) -c constraints.txt -e '.[docs]'
	$(BIN)/mkdocs build --strict

torture: export OPENBLAS_NUM_THREADS = 1
torture: $(STAMP)  ## kill runs, break servers, draw budgets and malformed inputs (an hour or more; results in benchmarks/results)
	$(BIN)/python benchmarks/torture/kills.py
	$(BIN)/python benchmarks/torture/budgets.py
	$(BIN)/python benchmarks/torture/fuzz.py
	$(BIN)/python benchmarks/torture/page.py

tables: $(STAMP)  ## make the score tables of the experiments (hours; continued where it ended); LARGER_MODEL=file.gguf adds a second model
	nice -n 19 $(BIN)/python experiments/tables/build.py
	$(if $(LARGER_MODEL),nice -n 19 $(BIN)/python experiments/tables/build.py --model $(LARGER_MODEL))

EXPERIMENTS := e1_surrogates e2_acquisition e3_direct_search e4_six_tasks e5_prompts projection

experiments: $(STAMP)  ## rerun the paper's five experiments on the score tables (hours; delete a results.csv to begin it anew)
	for name in $(EXPERIMENTS); do $(BIN)/python experiments/$$name/run.py || exit 1; done
	$(BIN)/python experiments/figures.py

figures: $(STAMP)  ## redraw the figures and tables of docs/reproduction.md from committed results
	$(BIN)/python experiments/figures.py

clean:  ## remove the virtual environments and caches
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-integrations .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
