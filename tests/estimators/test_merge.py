"""`omfb.merge`: sites that learn apart, and what they bring back."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest

import omfb
from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.learner.lineage import LONGEST
from omfb.persistence import ModelFileError, read_model, write_model

from ..making import ALL, rows, snapshot


def sites(estimator, rng, holes=0.2):
    X = rows(rng, 3000, 12, holes=holes)
    start = estimator(3, forget_factor=1.0, random_state=0).fit(X[:1000])
    return start, [copy(start).partial_fit(X[at : at + 500]) for at in range(1000, 3000, 500)], X


@ALL
def test_a_merged_model_has_learned_from_all_rows(estimator, rng):
    start, models, X = sites(estimator, rng)
    before = [snapshot(model) for model in (start, *models)]
    merged = omfb.merge(models, start)
    assert type(merged) is estimator
    assert merged.n_samples_seen_ == start.n_samples_seen_ + 2000
    assert merged.score(X) >= max(model.score(X) for model in models) - 1e-3
    assert 0.0 < merged.prequential_error_ < 1.0
    assert [snapshot(model) for model in (start, *models)] == before
    merged.partial_fit(X[:7])


@ALL
def test_models_are_merged_alike_after_they_were_saved(estimator, rng, tmp_path):
    start, models, _ = sites(estimator, rng)
    for at, model in enumerate((start, *models)):
        model.save(tmp_path / f"{at}.omfb")
    first, *others = (estimator.load(tmp_path / f"{at}.omfb") for at in range(1 + len(models)))
    omfb.merge(others, first).save(tmp_path / "loaded.omfb")
    omfb.merge(models, start).save(tmp_path / "merged.omfb")
    assert (tmp_path / "loaded.omfb").read_bytes() == (tmp_path / "merged.omfb").read_bytes()


def test_models_that_were_fitted_apart_are_refused(rng):
    X = rows(rng, 1000, 12)
    start, one, other = (OMFBImputer(3, random_state=0).fit(X[at:]) for at in (0, 100, 200))
    with pytest.raises(ValueError, match="cannot be merged: they have no common start"):
        omfb.merge([one, other], start)
    with pytest.raises(ValueError, match="nothing to merge"):
        omfb.merge([], start)
    with pytest.raises(ValueError, match="another algorithm"):
        omfb.merge([OMFB(3).fit(X)], start)


def test_a_start_that_is_too_young_is_refused(rng):
    X = rows(rng, 300, 12)
    start = OnlineFactorAnalysis(3, random_state=0).partial_fit(X[:50])
    with pytest.raises(ValueError, match="50 rows, too few"):
        omfb.merge([copy(start).partial_fit(X[50:])], start)


def test_a_merged_model_forgets_nobody(rng):
    """Each site has a component that the others never see."""
    atoms = np.linalg.qr(rng.standard_normal((20, 5)))[0].T
    level = np.array([3.0, 0.2, 0.2, 0.2, 0.2])

    def site(at, n=1500):
        codes = rng.standard_normal((n, 5)) * level
        codes[:, 1 + at] *= 15.0
        return codes @ atoms + 0.1 * rng.standard_normal((n, 20))

    start = OnlineFactorAnalysis(5, random_state=0).fit(
        np.concatenate([site(at, 300) for at in range(4)])
    )
    models = [copy(start).partial_fit(site(at)) for at in range(4)]
    merged = omfb.merge(models, start)
    for at in range(4):
        assert merged.score(site(at)) > 0.95


@ALL
def test_rows_are_not_counted_twice(rng, estimator):
    start, models, _ = sites(estimator, rng)
    for twice in (models[0], copy(models[0])):
        with pytest.raises(ValueError, match="given twice"):
            omfb.merge([*models, twice], start)
    unchanged = omfb.merge([copy(start), copy(start)], start)
    assert unchanged.n_samples_seen_ == start.n_samples_seen_


@ALL
def test_a_sibling_or_a_descendant_is_no_start(rng, estimator):
    start, (one, other, *_), X = sites(estimator, rng)
    with pytest.raises(ValueError, match="no common start"):
        omfb.merge([one], start=other)
    younger = copy(start).partial_fit(X[:50])  # with fewer rows, as a start has
    with pytest.raises(ValueError, match="no common start"):
        omfb.merge([one, other], start=younger)
    with pytest.raises(ValueError, match="cannot be merged"):
        omfb.merge([one, start], start=copy(one).partial_fit(X[:5]))


@ALL
@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle", "file", "original"])
def test_a_start_is_known_however_it_was_copied(rng, estimator, way, tmp_path):
    X = rows(rng, 1600, 12, holes=0.2)
    given = estimator(3, forget_factor=1.0, random_state=0).fit(X[:1000])
    start, parts = copy(given), []
    for _ in range(2):
        if way == "copy":
            part = copy(given)
        elif way == "deepcopy":
            part = deepcopy(given)
        elif way == "pickle":
            part = pickle.loads(pickle.dumps(given))
        else:
            given.save(tmp_path / "start.omfb")
            part = estimator.load(tmp_path / "start.omfb")
        parts.append(part)
    if way == "original":  # the model that copies were taken of is a part, too
        parts[0] = given
    for part, at in zip(parts, (1000, 1300), strict=True):
        part.partial_fit(X[at : at + 100])
        part.save(tmp_path / f"{at}.omfb")
        part.partial_fit(X[at + 100 : at + 300])
    assert omfb.merge(parts, start).n_samples_seen_ == start.n_samples_seen_ + 600


@ALL
def test_rows_that_two_parts_have_in_common_are_refused(rng, estimator):
    start, (one, other, third, *_), X = sites(estimator, rng)
    further = copy(one).partial_fit(X[2000:2100])
    twin = copy(one).partial_fit(X[2100:2200])
    merged = omfb.merge([one, other], start)
    for parts in ([one, further], [further, twin], [merged, other], [third, further, twin]):
        with pytest.raises(ValueError, match="rows would count twice"):
            omfb.merge(parts, start)
    again = omfb.merge([merged, third, start], start)  # a tree of merges
    assert again.n_samples_seen_ == start.n_samples_seen_ + 1500
    rounds = [copy(again).partial_fit(X[at : at + 100]) for at in (0, 100)]
    assert omfb.merge(rounds, again).n_samples_seen_ == again.n_samples_seen_ + 200


def test_a_file_whose_lineage_is_damaged_is_refused(rng, tmp_path):
    _, models, _ = sites(OMFBImputer, rng)
    models[0].save(tmp_path / "m.omfb")
    header, tensors = read_model(tmp_path / "m.omfb")
    assert len(header["lineage"]) == 2
    for wrong in ("x", [3], ["x"], header["lineage"] * 200):
        write_model(tmp_path / "n.omfb", {**header, "lineage": wrong}, tensors)
        with pytest.raises(ModelFileError, match="its lineage"):
            OMFBImputer.load(tmp_path / "n.omfb")


def test_the_lineage_of_a_model_that_is_saved_often_stays_short(rng):
    model = OnlineFactorAnalysis(2, random_state=0).fit(rows(rng, 600, 5))
    start = copy(model)
    for row in rows(rng, 300, 5):
        model.partial_fit(row)
        copy(model)
    assert len(model.learner_.snapshot().lineage) == LONGEST
    with pytest.raises(ValueError, match="no common start"):  # it cannot be known any more
        omfb.merge([model], start)


def test_parts_whose_rows_had_weights_are_refused(rng):
    X = rows(rng, 600)
    start = OnlineFactorAnalysis(2, random_state=0).fit(X[:400])
    part = copy(start).partial_fit(X[400:], sample_weight=np.full(200, 2.0))
    with pytest.raises(ValueError, match="its rows had weights"):
        omfb.merge([part], start)
