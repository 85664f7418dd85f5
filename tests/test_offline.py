"""The plugin that cuts the network refuses at once what would leave this machine.

Addresses are of TEST-NET-1, which nobody has, and the socket is one for datagrams: connecting it
sends nothing, even if the plugin were broken.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .offline import OfflineError, refuse

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = ("192.0.2.1", 80)

PROBE = """
import socket

import pytest
from tests.offline import OfflineError


def test_elsewhere():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        with pytest.raises(OfflineError, match="192.0.2.1"):
            datagrams.connect(("192.0.2.1", 80))
    with pytest.raises(OfflineError, match="example.invalid"):
        socket.getaddrinfo("example.invalid", 80)


def test_here():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
"""


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("socket.connect", (None, ELSEWHERE)),
        ("socket.connect", (None, ("2001:db8::1", 80, 0, 0))),
        ("socket.sendto", (None, ELSEWHERE)),
        ("socket.getaddrinfo", ("example.invalid", 80, 0, 0, 0)),
        ("socket.gethostbyname", (b"example.invalid",)),
    ],
)
def test_other_machines_are_refused(event, args):
    with pytest.raises(OfflineError, match="offline"):
        refuse(event, args)


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("socket.connect", (None, ("::1", 80, 0, 0))),
        ("socket.connect", (None, "/run/a.socket")),
        ("socket.getaddrinfo", ("localhost", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0)),
        ("open", ("192.0.2.1", "r", 0)),
    ],
)
def test_this_machine_is_not(event, args):
    refuse(event, args)


def test_pytest_loads_it_as_a_plugin(tmp_path):
    (tmp_path / "test_probe.py").write_text(PROBE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.offline", "-p", "no:cacheprovider",
         "--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "2 passed" in done.stdout, done.stdout + done.stderr
