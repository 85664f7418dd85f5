"""A cluster that most tests share."""

import pytest
from distributed import Client


@pytest.fixture(scope="module")
def one_process():
    """A cluster of one thread in this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        yield client
