"""Records a command in a terminal as an animated SVG.

    python docs/images/record.py docs/images/demo.svg -- bestprompt run counting-objects --latent ...

Needs Node.js: the frames are drawn by the npm package svg-term-cli. Waiting is shortened to ``LONGEST_WAIT``.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

COLUMNS, ROWS, LONGEST_WAIT, LAST_LOOK = 92, 34, 0.6, 6.0
FRAME = 0.4  # seconds; what is written within one is shown at once


def record(command: list[str]) -> list[tuple[float, str]]:
    """(seconds, text) of all that the command writes to a terminal, waits cut short."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shown, seen, now = [], time.monotonic(), 0.8
    while True:
        try:
            text = os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # the command has ended
            break
        now += min(time.monotonic() - seen, LONGEST_WAIT)
        seen = time.monotonic()
        if shown and now - shown[-1][0] < FRAME:
            shown[-1] = (shown[-1][0], shown[-1][1] + text)
        else:
            shown.append((now, text))
    os.waitpid(process, 0)
    return shown


def main() -> None:
    """Runs the command and draws what it showed."""
    target, command = Path(sys.argv[1]), sys.argv[sys.argv.index("--") + 1 :]
    typed = f"\x1b[1m$ {' '.join(Path(word).name if '/bin/' in word else word for word in command)}\x1b[0m\r\n"
    frames = [(0.1, typed), *record(command)]
    frames.append((frames[-1][0] + LAST_LOOK, ""))
    lines = [json.dumps({"version": 2, "width": COLUMNS, "height": ROWS})]
    lines += [json.dumps([round(when, 3), "o", text]) for when, text in frames]
    with tempfile.TemporaryDirectory() as folder:
        cast = Path(folder) / "cast.json"
        cast.write_text("\n".join(lines) + "\n", encoding="utf-8")
        drawing = ["npx", "--yes", "svg-term-cli", "--in", str(cast), "--out", str(target), "--window"]
        subprocess.run(drawing, check=True)


if __name__ == "__main__":
    main()
