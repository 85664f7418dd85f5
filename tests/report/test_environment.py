"""Where a report says it ran."""

import platform

from omfb.report.environment import environment


def test_environment_tells_versions_and_threads_but_no_name():
    facts = environment()
    assert {"python", "omfb", "numpy", "numba", "threads", "cores", "processor"} <= set(facts)
    assert facts["threads"]
    if platform.node() not in ("", "localhost"):
        assert platform.node() not in str(facts)
