"""`BroydenConfig` validates itself, and everything else is derived from it."""

import inspect
import math
import re
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.factor.config import FactorConfig
from omfb.persistence import read_model

NAMES = [field.name for field in fields(BroydenConfig)]
FLAGS = [field.name for field in fields(BroydenConfig) if field.type in (bool, "bool")]
COUNTS = [field.name for field in fields(BroydenConfig) if field.type in (int, "int")]
FACTOR_PARAMETERS = [
    "n_components", "forget_factor", "center", "scale", "noise", "robust", "temporal",
]  # fmt: skip


@pytest.mark.parametrize(
    "value", [1, np.float32(1.0), np.longdouble(1.0), Fraction(1), np.uint8(1), np.int64(1)]
)
def test_numbers_of_any_type_become_plain_ones(value):
    for name in NAMES:
        if (
            name in FLAGS
            or name == "absent"
            or (name in COUNTS and not isinstance(value, int | np.integer))
        ):
            continue
        also = {"forget_factor": 1.0} if name == "shrink" else {}
        config = BroydenConfig(**also, **{name: value})
        assert config == BroydenConfig(**also, **{name: type(getattr(config, name))(1)})
        assert type(getattr(config, name)) is (int if name in COUNTS else float)


def test_counts_beyond_a_types_range_are_themselves():
    assert BroydenConfig(inner_iter=np.uint8(200)).inner_iter + 100 == 300
    assert BroydenConfig(ridge=10**30, forget_factor=1.0).ridge == 1e30


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -1, -math.inf, "x", None, True, np.True_, 1j, 10**400, np.ones(1), [1]],
)
def test_what_cannot_be_used_is_refused_by_name(name, value):
    if name in FLAGS and isinstance(value, bool | np.bool_):
        assert getattr(BroydenConfig(**{name: value}), name) is True
        return
    with pytest.raises((TypeError, ValueError), match=f"{name} must be") as caught:
        BroydenConfig(**{name: value})
    assert len(str(caught.value)) < 200


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match=r"shrink=2\.0 needs forget_factor > 0"):
        BroydenConfig(shrink=2, forget_factor=0)
    with pytest.raises(ValueError, match="forget_factor must be between 0 and 1"):
        broyden.init(np.eye(3), 2, BroydenConfig(forget_factor=2))


def test_an_int_and_a_float_share_their_kernels():
    """Each type of a parameter would be compiled for on its own, for many seconds."""
    from omfb.core.broyden import block as sequence
    from omfb.core.broyden import missing_rows as missing

    X = np.random.default_rng(0).normal(size=(20, 6))
    kernels = (missing.learn_each, sequence.sequence)
    OMFB(2, ridge=1.0, lam=2.0).fit(X).partial_fit(X[:1])
    before = [len(kernel.signatures) for kernel in kernels]
    OMFB(2, ridge=1, lam=np.float32(2), inner_iter=np.uint8(2)).fit(X).partial_fit(X[:1])
    assert [len(kernel.signatures) for kernel in kernels] == before


# -- written down once --------------------------------------------------------------------------


def test_omfb_has_the_parameters_of_its_config_and_their_defaults():
    parameters = inspect.signature(OMFB).parameters
    for field in fields(BroydenConfig):
        # None is "missing", too, but warns where it looks wrong.
        default = None if field.name == "absent" else field.default
        assert parameters[field.name].default == default, field.name
        assert field.name in BroydenConfig.__doc__


@pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
def test_estimators_of_the_factor_model_have_the_parameters_of_its_config(estimator):
    assert "n_components" in FactorConfig.__doc__
    for name in FACTOR_PARAMETERS:
        assert name in inspect.signature(estimator).parameters, name
        assert name in {field.name for field in fields(FactorConfig)}


@pytest.mark.parametrize("estimator", [OMFB, OnlineFactorAnalysis, OMFBImputer])
def test_an_estimator_documents_its_parameters_and_their_defaults(estimator):
    doc = inspect.getdoc(estimator).partition("Attributes\n")[0]
    for name, parameter in inspect.signature(estimator).parameters.items():
        line = next(line for line in doc.splitlines() if re.match(rf"(\w+, )*{name}(, | :)", line))
        if isinstance(parameter.default, int | float | bool | None):
            assert line.endswith(f"default={parameter.default}"), line


@pytest.mark.parametrize("estimator", [OMFB, OnlineFactorAnalysis, OMFBImputer])
def test_an_estimator_documents_what_it_finds(estimator):
    """Each public property is an attribute in the docstring, and none is there that is not."""
    doc = inspect.getdoc(estimator).partition("Attributes\n")[2].partition("See Also")[0]
    documented = set(re.findall(r"^(\w+_) : ", doc, re.M))
    found = {
        name
        for name in dir(estimator)
        if name.endswith("_") and not name.startswith("_")
        and isinstance(inspect.getattr_static(estimator, name), property)
    }  # fmt: skip
    assert documented == found | {"n_iter_"}


@pytest.mark.parametrize("estimator", [OMFB, OnlineFactorAnalysis, OMFBImputer])
def test_the_command_line_has_each_parameter_of_an_estimator(estimator):
    from omfb.cli.fit import fit

    options = inspect.signature(fit).parameters
    names = {
        "random_state": "seed", "positive_code": "positive", "positive_dict": "positive",
        "missing_values": "missing",
    }  # fmt: skip
    # The command line has --quiet, reads tables with fixed columns, and keeps all of them.
    others = {"verbose", "new_features", "remainder", "add_indicator", "keep_empty_features"}
    for name in inspect.signature(estimator).parameters:
        if name not in others:
            assert names.get(name, name) in options, name


@pytest.mark.parametrize("estimator", [OMFB, OnlineFactorAnalysis, OMFBImputer])
def test_a_file_has_each_parameter(tmp_path, estimator):
    estimator(1).fit(np.eye(3)).save(tmp_path / "m.omfb")
    header = read_model(tmp_path / "m.omfb")[0]
    assert set(header["parameters"]) == set(estimator().get_params())
    config = BroydenConfig if estimator is OMFB else FactorConfig
    assert set(header["state"]["config"]) == {field.name for field in fields(config)}
