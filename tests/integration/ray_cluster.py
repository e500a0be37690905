"""A real Ray cluster on this machine: each node in a network namespace of its own where that is allowed.

A node in a namespace can be cut off as a machine can: packets to and from it are lost, and nobody is told.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HEAD, BRIDGE = "10.213.7.1", "bp-ray"
# A node that has not been heard of for some seconds is dead; by default it takes half a minute.
IMPATIENT = '{"health_check_period_ms": 1000, "health_check_timeout_ms": 2000, "health_check_failure_threshold": 3}'
SMALL = ["--num-gpus", "0", "--object-store-memory", "80000000", "--disable-usage-stats"]


def namespaces_allowed() -> bool:
    """Whether this process may make network namespaces and move into them."""
    if not shutil.which("ip"):
        return False
    made = subprocess.run(["ip", "netns", "add", "bp-try"], capture_output=True).returncode == 0
    inside = made and subprocess.run(["ip", "netns", "exec", "bp-try", "true"], capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", "bp-try"], capture_output=True)
    return inside


class Node:
    """One ``ray start --block`` and all that belongs to it."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.name, self.cut = f"bp-ray-{number}", False
        self.ip = f"10.213.7.{number + 1}" if cluster.apart else "127.0.0.1"
        inside: list[str] = []
        if cluster.apart:
            link = f"bpr{number}"
            for command in (
                ["netns", "add", self.name],
                ["link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self.name],
                ["link", "set", link, "master", BRIDGE, "up"],
                ["-n", self.name, "addr", "add", f"{self.ip}/24", "dev", "eth0"],
                ["-n", self.name, "link", "set", "eth0", "up"],
                ["-n", self.name, "link", "set", "lo", "up"],
            ):
                subprocess.run(["ip", *command], check=True, capture_output=True)
            self.link, inside = link, ["ip", "netns", "exec", self.name]
        folder = cluster.folder / self.name
        folder.mkdir()
        self.process = _start(
            [*inside, *_ray("start", "--block", "--address", cluster.address, "--node-ip-address", self.ip),
             "--num-cpus", "1", "--resources", f'{{"node{number}": 1}}', *SMALL,
             "--temp-dir", str(folder)],
            cluster.folder / f"{self.name}.log",
        )  # fmt: skip

    def kill(self) -> None:
        """As if the plug were pulled: every process of the node ends at once."""
        _end(self.process)

    def cut_off(self) -> None:
        """Packets are lost from now on."""
        subprocess.run(["ip", "link", "set", self.link, "down"], check=True)


class Cluster:
    """A head without workers, and nodes."""

    def __init__(self, folder: Path, apart: bool) -> None:
        self.folder, self.apart = folder, apart
        self.ip = HEAD if apart else "127.0.0.1"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"{self.ip}:{free.getsockname()[1]}"
        if apart:
            subprocess.run(["ip", "link", "add", BRIDGE, "type", "bridge"], check=True)
            subprocess.run(["ip", "addr", "add", f"{HEAD}/24", "dev", BRIDGE], check=True)
            subprocess.run(["ip", "link", "set", BRIDGE, "up"], check=True)
        self.nodes: list[Node] = []
        self.head = _start(
            [*_ray("start", "--block", "--head", "--node-ip-address", self.ip, "--port", self.address.split(":")[1]),
             "--num-cpus", "0", "--include-dashboard", "false", "--system-config", IMPATIENT, *SMALL,
             "--temp-dir", str(folder / "head")],
            folder / "head.log",
        )  # fmt: skip

    def join(self, nodes: int) -> None:
        """Nodes start, and are stopped with the cluster even if one of them cannot."""
        for number in range(1, nodes + 1):
            self.nodes.append(Node(self, number))

    def stop(self) -> None:
        """All processes end, and nothing of the network is left."""
        for process in (*(node.process for node in self.nodes), self.head):
            _end(process)
        if self.apart:
            _remove_network()

    def wait_until_ready(self, seconds: float = 300.0) -> None:
        """Until every node says that it has started."""
        logs = [self.folder / "head.log", *(self.folder / f"{node.name}.log" for node in self.nodes)]
        deadline = time.monotonic() + seconds
        while not all("Ray runtime started" in log.read_text() for log in logs):
            assert time.monotonic() < deadline, [log.read_text()[-2000:] for log in logs]
            time.sleep(0.5)


def _ray(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).parent / "ray"), *arguments]


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    quiet = {**os.environ, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, env=quiet)


@contextmanager
def ray_cluster(nodes: int) -> Iterator[Cluster]:
    """A cluster of ``nodes`` besides its head, gone afterwards."""
    # Sockets of Ray have long names, and names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="bpr", dir="/tmp"))
    apart = namespaces_allowed()
    if apart:
        _remove_network()  # of a cluster that nobody could stop
    cluster = Cluster(folder, apart)
    try:
        cluster.join(nodes)
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _remove_network() -> None:
    """A namespace goes when the last process in it has; what a node left behind ends first."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.split()
    for name in (name for name in listed if name.startswith("bp-ray-")):
        inside = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for pid in inside:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "link", "del", f"bpr{name.removeprefix('bp-ray-')}"], capture_output=True)
    subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)
