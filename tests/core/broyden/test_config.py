"""`BroydenConfig` validates itself, and everything else is derived from it."""

import inspect
import math
import re
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from omfb import OMFB, OMFBImputer
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.factor.config import FactorConfig

from ...making import given

NAMES = [field.name for field in fields(BroydenConfig)]
COUNTS = [field.name for field in fields(BroydenConfig) if field.type in (int, "int")]


@pytest.mark.parametrize(
    "value", [1, np.float32(1.0), np.longdouble(1.0), Fraction(1), np.uint8(1), np.int64(1)]
)
def test_numbers_of_any_type_become_plain_ones(value):
    for name in NAMES:
        if name in COUNTS and not isinstance(value, int | np.integer):
            continue
        config = BroydenConfig(**{name: value})
        assert config == BroydenConfig(
            **{name: type(getattr(BroydenConfig(forget_factor=1.0), name))(1)}
        )
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
    with pytest.raises((TypeError, ValueError), match=f"{name} must be") as caught:
        BroydenConfig(**{name: value})
    assert len(str(caught.value)) < 200


def test_what_does_not_go_together_is_refused():
    with pytest.raises(ValueError, match=r"shrink=2\.0 needs a forget_factor"):
        BroydenConfig(shrink=2, forget_factor=0)
    with pytest.raises(ValueError, match="forget_factor must be between 0 and 1"):
        broyden.init(np.eye(3), 2, BroydenConfig(forget_factor=2))


def test_an_int_and_a_float_share_their_kernels():
    """Each type of a parameter would be compiled for on its own, for many seconds."""
    from omfb.core.broyden import block as sequence
    from omfb.core.broyden import missing_rows as missing

    X = np.random.default_rng(0).normal(size=(20, 6))
    kernels = (missing.learn_each, sequence.sequence)
    OMFB(2, **given(ridge=1.0, lam=2.0)).fit(X).partial_fit(X[:1])
    before = [len(kernel.signatures) for kernel in kernels]
    how = given(ridge=1, lam=np.float32(2), inner_iter=np.uint8(2))
    OMFB(2, **how).fit(X).partial_fit(X[:1])
    assert [len(kernel.signatures) for kernel in kernels] == before


# -- written down once --------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [OMFB, OMFBImputer])
def test_an_estimator_has_each_parameter_of_the_rule(estimator):
    """What is None is found; of the rest, each default is the same everywhere."""
    parameters = inspect.signature(estimator).parameters
    for field in fields(BroydenConfig):
        assert parameters[field.name].default in (field.default, None), field.name
    assert parameters["forget_factor"].default == BroydenConfig(forget_factor=1.0).forget_factor
    for field in fields(FactorConfig):
        assert parameters[field.name].default in (field.default, None), field.name
    doc = estimator.__doc__.partition("Attributes\n")[0]
    for name, parameter in parameters.items():
        line = next(
            line for line in doc.splitlines() if re.match(rf"    (\w+, )*{name}(, | :)", line)
        )
        if isinstance(parameter.default, int | float | bool | None):
            assert line.endswith(f"default={parameter.default}"), line
    for name in NAMES:
        assert name in BroydenConfig.__doc__
    for field in fields(FactorConfig):
        assert field.name in FactorConfig.__doc__


@pytest.mark.parametrize("estimator", [OMFB, OMFBImputer])
def test_an_estimator_documents_what_it_finds(estimator):
    """Each public property is an attribute in the docstring, and none is there that is not."""
    doc = estimator.__doc__.partition("Attributes\n")[2].partition("See Also")[0]
    documented = set(re.findall(r"^    (\w+_) : ", doc, re.M))
    found = {
        name
        for name in dir(estimator)
        if name.endswith("_") and not name.startswith("_")
        and isinstance(inspect.getattr_static(estimator, name), property)
    }  # fmt: skip
    assert documented == found | {"n_iter_"}


def test_the_command_line_has_each_parameter_of_the_estimator():
    from omfb.cli.fit import fit

    options = inspect.signature(fit).parameters
    renamed = {"n_components": "components", "random_state": "seed"}
    for name, parameter in inspect.signature(OMFB).parameters.items():
        if name == "verbose":  # the command line has --quiet
            continue
        assert options[renamed.get(name, name)].default == parameter.default, name


def test_a_file_has_each_parameter(tmp_path):
    from omfb.persistence import read_model

    OMFB(1).fit(np.eye(3)).save(tmp_path / "m.omfb")
    header = read_model(tmp_path / "m.omfb")[0]
    assert set(header["parameters"]) == set(OMFB().get_params())
    assert set(header["state"]["settings"]) == {field.name for field in fields(FactorConfig)}
    OMFB(1, forget_factor=0.0).fit(np.eye(3)).save(tmp_path / "m.omfb")
    assert set(read_model(tmp_path / "m.omfb")[0]["state"]["config"]) == set(NAMES)
    OMFBImputer(1).fit(np.eye(3)).save(tmp_path / "m.omfb")
    header = read_model(tmp_path / "m.omfb")[0]
    assert set(header["parameters"]) == set(OMFBImputer().get_params())
