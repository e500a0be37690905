"""Runs as processes of the command line: started, stopped and continued; the only writers there are."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from bestprompt.errors import ConfigError

# A process that is started from a background job inherits an ignored interrupt; one that is to be stopped must hear it.
_COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from bestprompt.cli import main; main()"
)
PATIENCE = 20.0  # seconds in which a run that is told to stop has written what it knows


class Processes:
    """The runs that were started here, by name; each says what it has to say in a file of its own."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str) -> None:
        """Starts ``bestprompt`` with these arguments for the run ``name``.

        Raises:
            ConfigError: If that run is under way.
        """
        if self.running(name):
            raise ConfigError(f"The run {name} is under way.")
        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("wb") as file:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, *arguments, "--quiet"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at the server's terminal reaches it through us, once
            )

    def running(self, name: str) -> bool:
        """Whether the run was started here and has not ended."""
        process = self._running.get(name)
        return process is not None and process.poll() is None

    def failed(self, name: str) -> bool:
        """Whether the run was started here and ended with an error."""
        process = self._running.get(name)
        return process is not None and process.poll() not in (None, 0, 130)

    def stop(self, name: str) -> bool:
        """Asks a run to stop, as Ctrl-C does; ``False`` if it was not started here or has ended."""
        if not self.running(name):
            return False
        self._running[name].send_signal(signal.SIGINT)
        return True

    def stop_all(self) -> None:
        """Stops every run and waits until it has."""
        stopped = [self._running[name] for name in self._running if self.stop(name)]
        for process in stopped:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()  # nothing is lost: every answer was recorded when it came
                process.wait()

    def log(self, name: str) -> Path:
        """Where the run's words go."""
        return self._logs / f"{name}.log"

    def last_words(self, name: str, most: int = 2000) -> str:
        """The end of what the run has said."""
        try:
            return self.log(name).read_text(encoding="utf-8", errors="replace")[-most:].strip()
        except OSError:
            return ""
