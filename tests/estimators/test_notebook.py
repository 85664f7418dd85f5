"""What notebooks show of a fitted estimator."""

import numpy as np
import pytest

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.estimators.notebook import found_table


@pytest.mark.parametrize("model", [OMFB(2), OMFBImputer(), OnlineFactorAnalysis()], ids=repr)
def test_a_fitted_model_shows_what_it_has_found(model, rng):
    assert "what the fit has found" not in model._repr_html_()
    X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 6))
    model.fit(X)
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "what the fit has found" in page
        assert "rows seen" in page
        assert "running error" in page


def test_the_table_of_a_young_stream_is_empty_and_makes_no_model(rng):
    model = OnlineFactorAnalysis().partial_fit(rng.standard_normal((2, 5)))
    assert found_table(model) == ""
    assert model.learner_.snapshot().learned.state is None


def test_names_are_escaped(rng):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.standard_normal((50, 2)), columns=["<script>", "b"])
    assert "<td style='text-align:left'><script>" not in OMFBImputer().fit(frame)._repr_html_()
    assert np.isfinite(OMFBImputer().fit(frame).error_history_).all()
