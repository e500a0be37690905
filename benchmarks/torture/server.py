"""A server that counts: answers by a fixed rule, or fails as told, and writes down each request before it does.

    python benchmarks/torture/server.py LOG [--seconds 0.02] [--faults 0.3] [--seed 0]

Prints its port. A line of the log is a request that was received: the question, what became of it, and the seed it came
with. The answer to a question never changes: it is right with a probability that the prompt decides. Whether and how a
question fails depends on the seed and on how often it was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import socket
import struct
from collections import Counter
from pathlib import Path
from typing import IO

from faults import FAULTS, Wire, response

QUALITY = {
    "Echo the word.": 0.95,
    "Repeat the word.": 0.6,
    "Say it again.": 0.45,
    "Copy.": 0.3,
    "Print it.": 0.2,
    "Go.": 0.1,
}
WELL = "well"


def chance(*key: object) -> float:
    """A number in [0, 1) that depends on ``key`` alone."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:7], "big") / 2**56


def answer_to(question: str) -> bytes:
    """The JSON of the answer."""
    prompt, _, word = question.partition("\n\n")
    text = word if chance("answer", question) < QUALITY.get(prompt, 0.5) else "wrong"
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps(body).encode()


class Server:
    """Counts and answers."""

    def __init__(self, log: IO[str] | None, seconds: float, faults: float, seed: int) -> None:
        self._log, self._seconds, self._faults, self._seed = log, seconds, faults, seed
        self._asked: Counter[str] = Counter()
        self._kinds = list(FAULTS)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(size))
                if not await self._answer(body["messages"][-1]["content"], body.get("seed"), writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, question: str, seed: int | None, writer: asyncio.StreamWriter) -> bool:
        times = self._asked[question]
        self._asked[question] += 1
        drawn = chance("fault", self._seed, question, times)
        kind = self._kinds[int(drawn / self._faults * len(self._kinds))] if drawn < self._faults else WELL
        if self._log is not None:
            self._log.write(json.dumps([question, kind, seed]) + "\n")
            self._log.flush()
        right = answer_to(question)
        wire = Wire(response(right), keep=True) if kind == WELL else FAULTS[kind](right)
        if self._seconds:
            await asyncio.sleep(self._seconds * (0.5 + chance("slow", question, times)))
        if wire.data:
            writer.write(wire.data)
            await writer.drain()
        if wire.silence:
            await asyncio.sleep(wire.silence)
        if wire.reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        return wire.keep


async def serve(log: IO[str] | None, seconds: float, faults: float, seed: int) -> None:
    """Until killed."""
    handler = Server(log, seconds, faults, seed)
    server = await asyncio.start_server(handler, "127.0.0.1", 0, backlog=512, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with given.log.open("a") as kept:
        asyncio.run(serve(None if given.log == Path("/dev/null") else kept, given.seconds, given.faults, given.seed))
