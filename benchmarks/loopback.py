"""A server on loopback that speaks the OpenAI protocol, in a process of its own, with service times as asked for.

python benchmarks/loopback.py --mean 0.2 --spread 0.5     # prints its port; ends when its input is closed
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(mean: float, spread: float = 0.0) -> Iterator[str]:
    """The URL of a server whose answers take ``mean`` seconds, log-normally, with a coefficient of variation."""
    command = [sys.executable, str(Path(__file__)), "--mean", str(mean), "--spread", str(spread)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.communicate()


def _reply(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    body = json.dumps(
        {
            "id": "1", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
        }
    ).encode()  # fmt: skip
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _serve(mean: float, spread: float) -> None:
    variance = math.log(1.0 + spread**2)
    chance = random.Random(0)

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                asked = json.loads(await reader.readexactly(length))
                if mean:
                    await asyncio.sleep(chance.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance)))
                writer.write(_reply(asked["messages"][-1]["content"].split()[-1]))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)  # connections that clients keep open are of no interest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mean", type=float, default=0.2)
    parser.add_argument("--spread", type=float, default=0.5)
    options = parser.parse_args()
    asyncio.run(_serve(options.mean, options.spread))


if __name__ == "__main__":
    main()
