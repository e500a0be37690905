"""One run on a real Ray cluster: a node is killed, another cut off, and every evaluation is counted once."""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray_cluster import Cluster, ray_cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="Ray is not installed; `make test-ray` installs and tests it"
    ),
]
BUDGET, NODES = 150, 3
TASK = """
[task]
data = "pairs.csv"
examples = ["Repeat the word.", "Say it again.", "Echo."]
scorer = { kind = "exact" }
max_tokens = 4
"""
TOML = """
[model]
kind = "openai"
name = "m"
base_url = "{url}"
concurrency = 4
timeout = 30
[budget]
calls = {budget}
[selection]
stop_gain = 0.0
in_flight = 12
[ideas]
mode = "off"
[ray]
address = "{address}"
"""
WORKER = """
[[ray.worker]]
resources = {{ node{number} = 1 }}
"""


EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SCRIPT = """
import sys, time
from pathlib import Path

sys.path.insert(0, "{experiments}")
from protocol import fill
from bestprompt.rng import stream

SCALE = 3.0


def measure(repetition):
    import ray

    time.sleep(0.5)  # so that no node does all of it
    where = ray.util.get_node_ip_address() if ray.is_initialized() else "here"
    return {{"value": SCALE * stream(repetition, "test").random(), "where": where}}


path, address = sys.argv[1:]
fill(Path(path), "repetition", "value where", [(n,) for n in range(12)], measure, address or None)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ray_cluster(NODES) as made:
        made.wait_until_ready()
        yield made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    words = "\n".join(f"word{n},word{n}" for n in range(60))
    (tmp_path / "pairs.csv").write_text(f"input,output\n{words}\n")
    return tmp_path


def test_the_same_run_as_without_a_cluster(cluster: Cluster, project: Path, run_in: Any) -> None:
    """In lock-step, with a model in each of two actors: what is recorded is the same, answer by answer."""
    pace = "[budget]\ncalls = 24\n[selection]\nbatch = 6\n[model]\nthreads = 1\n"
    (project / "here.toml").write_text(TASK + pace)
    (project / "there.toml").write_text(f'{TASK}{pace}[ray]\naddress = "{cluster.address}"\nworkers = 2\n')
    here, there = run_in(project / "here", project), run_in(project / "there", project)
    alone = json.loads(here.finish("run", "here.toml", "-o", str(here.folder)))
    together = json.loads(there.finish("run", "there.toml", "-o", str(there.folder)))
    same = ("prompt", "score", "interval", "calls", "probability_best")
    assert {name: alone[name] for name in same} == {name: together[name] for name in same}
    assert there.rows("intent") == [], "a model inside an actor sends no bill"


def test_repetitions_of_an_experiment_spread_over_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """In the order of the cells, with the same results as here; by a script that uses modules beside the package."""
    (tmp_path / "script.py").write_text(SCRIPT.format(experiments=str(EXPERIMENTS)))
    found = []
    for address in ("", cluster.address):
        path = tmp_path / f"results-{len(found)}.csv"
        command = [sys.executable, str(tmp_path / "script.py"), str(path), address]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
        with path.open(newline="") as file:
            found.append(list(csv.DictReader(file)))
    here, there = found
    assert [(row["repetition"], row["value"]) for row in here] == [(row["repetition"], row["value"]) for row in there]
    assert [row["repetition"] for row in there] == [str(n) for n in range(12)]
    assert len({row["where"] for row in there}) == (NODES if cluster.apart else 1)


def test_a_killed_and_a_cut_off_node(
    cluster: Cluster, project: Path, run_in: Any, serve_requests: Any, chat_answer: Any
) -> None:
    asked, lock = Counter[str](), threading.Lock()

    def reply(attempt: int, body: Any) -> Any:
        text = body["messages"][-1]["content"]
        with lock:
            asked[text] += 1
        if attempt == 30:
            cluster.nodes[0].kill()
        if attempt == 70 and cluster.apart:
            cluster.nodes[1].cut_off()
        time.sleep(0.3)
        prompt, word = text.split("\n\n")
        return 200, {}, chat_answer(word if prompt == "Echo." else "no")

    run = run_in(project / "run", project)
    with serve_requests(reply, host=cluster.ip) as (url, seen):
        toml = TASK + TOML.format(url=url, budget=BUDGET, address=cluster.address)
        toml += "".join(WORKER.format(number=number) for number in range(1, NODES + 1))
        (project / "t.toml").write_text(toml)
        printed = run.finish("run", "t.toml", "-o", str(run.folder))
    assert printed.startswith("{"), printed[:2000]
    result = json.loads(printed)
    rows = run.rows("evaluation")
    settled = [row[1:3] for row in rows if row[6] == "ok"]
    lost = [row for row in rows if "was lost" in str(row)]
    assert len(settled) == len(set(settled)), "every evaluation is counted once"
    assert 1 <= len(lost) <= 8, "no more than was at the two nodes"
    assert len(settled) + len(lost) == result["calls"] == BUDGET
    assert len(settled) <= len(seen) <= BUDGET, "what may have been billed stays within the budget"
    assert len(run.rows("intent")) == len(run.rows("outcome"))
    assert result["prompt"] == "Echo."
    # What was asked twice was lost the first time.
    assert sum(asked.values()) - len(asked) <= len(lost)
