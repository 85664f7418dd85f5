"""A small part of `make hostile`, which runs for as long as one likes: nothing breaks."""

import pytest

from . import workers
from .kinds import KINDS, warm_up
from .trial import BAD

# Trials of each kind; processes are the slowest.
COUNTS = {
    "data files, by command": 20, "command lines": 20, "kills": 1, "model files": 60,
    "checkpoints": 60, "interrupts": 60,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def warm():
    warm_up()


@pytest.mark.filterwarnings("ignore")  # of the hostile things themselves; trials watch omfb's own
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_breaks(kind):
    results = list(workers.run(KINDS[kind], 0, COUNTS.get(kind, 150)))
    assert [result for result in results if set(result.outcomes) & set(BAD)] == []
    assert len(results) == COUNTS.get(kind, 150)
