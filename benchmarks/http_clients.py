"""What sending a request costs, by the library that sends it: processor time, many threads, a server on loopback.

Libraries that are not installed are left out (bestprompt needs urllib3 alone).

    python benchmarks/http_clients.py [--threads 64] [--calls 4000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import http.client
import importlib.util
import json
import queue
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from loopback import served

RESULTS = Path(__file__).parent / "results" / "http_clients.md"
ASKED = {
    "model": "m",
    "temperature": 0.0,
    "top_p": 1.0,
    "seed": 0,
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Repeat the word exactly.\n\nword17"}],
}
HEADERS = {"Authorization": "Bearer x", "Content-Type": "application/json", "Accept": "application/json"}
Send = Callable[[], bytes]


def openai_sdk(url: str, _threads: int) -> Send:
    """Its plain ``post``: the typed methods take longer."""
    from openai import OpenAI

    client = OpenAI(api_key="x", base_url=url, max_retries=0)
    options = {"headers": {"X-Stainless-Raw-Response": "true"}}
    return lambda: bytes(client.post("/chat/completions", cast_to=object, body=ASKED, options=options).content)


def httpx(url: str, threads: int) -> Send:
    """What the SDK sends with."""
    import httpx2

    client = httpx2.Client(headers=HEADERS, limits=httpx2.Limits(max_keepalive_connections=threads))
    return lambda: bytes(client.post(f"{url}/chat/completions", content=json.dumps(ASKED).encode()).content)


def urllib3(url: str, threads: int) -> Send:
    """As ``bestprompt.lm.connections`` uses it."""
    from bestprompt.lm.connections import Connections

    server = Connections(url, "x", 60.0, 10.0, threads)
    return lambda: server.post("chat/completions", json.dumps(ASKED).encode()).body


def standard_library(url: str, _threads: int) -> Send:
    """``http.client`` with kept connections, and nothing else: no proxy, no look at whether a connection was closed."""
    parts = urlsplit(url)
    kept: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()

    def send() -> bytes:
        try:
            connection = kept.get_nowait()
        except queue.Empty:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60.0)
        connection.request("POST", f"{parts.path}/chat/completions", json.dumps(ASKED).encode(), HEADERS)
        body = connection.getresponse().read()
        kept.put(connection)
        return body

    return send


CLIENTS = {
    "openai SDK": ("openai", openai_sdk),
    "httpx": ("httpx2", httpx),
    "urllib3": ("urllib3", urllib3),
    "http.client": ("http", standard_library),
}


def cost(make: Callable[[str, int], Send], threads: int, calls: int) -> float:
    """Milliseconds of processor time a call."""
    with served(0.0) as url, ThreadPoolExecutor(threads) as pool:
        send = make(url, threads)
        list(pool.map(lambda _: send(), range(4 * threads)))
        before = time.process_time()
        replies = list(pool.map(lambda _: send(), range(calls)))
        used = time.process_time() - before
    assert all(json.loads(reply)["choices"] for reply in replies)
    return 1e3 * used / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    lines = [
        "# What sending a request costs",
        "",
        f"`python benchmarks/http_clients.py --threads {options.threads} --calls {options.calls} "
        f"--repeats {options.repeats}`",
        "",
        "| client | ms of processor time a call, median | range |",
        "| --- | --- | --- |",
    ]
    for name, (package, make) in CLIENTS.items():
        if importlib.util.find_spec(package) is None:
            continue
        costs = [cost(make, options.threads, options.calls) for _ in range(options.repeats)]
        lines.append(f"| {name} | {statistics.median(costs):.2f} | {min(costs):.2f} to {max(costs):.2f} |")
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
