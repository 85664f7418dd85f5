"""What tests of the command line share."""

import pytest

from ..commands import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Starts commands in processes of their own, without the seconds that imports take."""
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.close()
