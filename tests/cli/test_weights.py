"""`omfb fit --weights`: a column that holds the weights of rows, and is not learned."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.cli import app
from omfb.formats import open_stream
from omfb.learner.fit_stream import StopFitting
from omfb.streams.weight_column import WeightColumnSource

from ..commands import low_rank

NAMES = list("abcdef")


@pytest.fixture
def frame(rng):
    frame = pd.DataFrame(low_rank(500, 6), columns=NAMES)
    frame.insert(2, "weight", rng.integers(0, 4, 500))
    return frame


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_of_weights_is_what_sample_weight_is(tmp_path, frame, ending):
    path = tmp_path / f"table.{ending}"
    (frame.to_csv if ending == "csv" else frame.to_parquet)(path, index=False)
    words = ["fit", path, "-o", tmp_path / "m.omfb", "--weights", "weight", "--no-shuffle"]
    done = run(*words, "--seed", 0)
    assert done.exit_code == 0, done.output
    model = OMFBImputer.load(tmp_path / "m.omfb")
    expected = OMFBImputer(shuffle=False, random_state=0)
    expected.fit(frame[NAMES], sample_weight=frame["weight"])
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-6, atol=1e-8)


def test_a_weighted_fit_to_a_file_resumes_bit_for_bit(tmp_path, frame):
    path, checkpoint = tmp_path / "table.csv", tmp_path / "fit.ckpt"
    frame.to_csv(path, index=False)

    def model():
        return OnlineFactorAnalysis(2, random_state=0, max_iter=3)

    def source():
        return WeightColumnSource(open_stream(path), "weight")

    def stop(progress):
        if progress.number == 2:
            raise StopFitting

    whole, part, resumed = model(), model(), model()
    whole.fit_source(source())
    with pytest.raises(StopFitting):
        part.fit_source(source(), checkpoint=checkpoint, every="1rows", on_block=stop)
    resumed.fit_source(source(), checkpoint=checkpoint, resume=True)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    other = WeightColumnSource(open_stream(path), "a")
    with pytest.raises(ValueError, match="other data"):
        model().fit_source(other, checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--weights", "wait"], "has no column 'wait' of numbers"),
        (["--weights", "a"], "Weights are 0, or numbers"),
        (["--weights", "weight", "--estimator", "omfb"], "cannot be used with --estimator omfb"),
        (["--weights", "weight", "--columns", "weight"], "no columns besides"),
    ],
)
def test_columns_that_hold_no_weights_are_refused_in_one_line(tmp_path, frame, words, message):
    frame.to_csv(tmp_path / "table.csv", index=False)
    done = run("fit", tmp_path / "table.csv", "-o", tmp_path / "m.omfb", *words)
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())
    assert not (tmp_path / "m.omfb").exists()


def test_rows_that_have_times_cannot_be_left_out(tmp_path, frame):
    frame.insert(0, "time", pd.date_range("2024", periods=500, freq="h"))
    frame.to_csv(tmp_path / "table.csv", index=False)
    words = ["fit", tmp_path / "table.csv", "-o", tmp_path / "m.omfb", "--weights", "weight"]
    assert "but come at times" in " ".join(run(*words).output.split())
    frame["weight"] += 1
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert run(*words).exit_code == 0
    assert OMFBImputer.load(tmp_path / "m.omfb").learner_.is_temporal
