"""What an experiment returns."""

import itertools
import json

import pytest

from omfb.report.outcome import Outcome, as_json, mean_and_spread


def test_values_are_the_last_or_those_asked_for():
    outcome = Outcome("x", "x", {})
    for repeat, passes in itertools.product(range(2), (1, 2)):
        outcome.add("a", "error", passes, 10 * repeat + passes, repeat)
    assert outcome.values("a", "error") == [2, 12]
    assert outcome.values("a", "error", 1) == [1, 11]
    assert outcome.curve("a", "error") == {1: [1, 11], 2: [2, 12]}
    with pytest.raises(KeyError, match="after 3 passes"):
        outcome.values("a", "error", 3)


def test_spread_is_the_standard_deviation():
    assert mean_and_spread([-1.0, -3.0]) == "−2.00 ± 1.41"
    assert mean_and_spread([1.0]) == "1.00"


def test_settings_that_json_does_not_have_are_text():
    settings = {"missing_values": float("nan"), "bounds": (1.0, float("-inf")), "n": None}
    written = json.dumps(as_json(settings), allow_nan=False)
    assert json.loads(written) == {"missing_values": "nan", "bounds": [1.0, "-inf"], "n": None}
