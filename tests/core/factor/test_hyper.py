"""Constants have a reason, are used, and cannot be changed."""

import ast
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import omfb.core.factor
from omfb.core.factor import hyper
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.hyper import Hyper

SOURCES = Path(omfb.core.factor.__file__).parent


def used_fields():
    """Attributes of something called `hyper` that the modules of the factor model read.

    Names that are bound to `hyper` itself do not count: reading `hyper.fade` does, for which
    `config.hyper.fade` is another spelling.
    """
    used = set()
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name == "hyper":
                    used.add(node.attr)
    return used


@pytest.mark.parametrize("name", [each.name for each in fields(Hyper)])
def test_every_constant_is_used(name):
    assert name in used_fields()


def test_every_constant_that_is_read_exists():
    assert used_fields() <= {each.name for each in fields(Hyper)}


def test_every_constant_has_a_reason():
    (body,) = (
        node.body
        for node in ast.parse(Path(hyper.__file__).read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    for at, node in enumerate(body):
        if isinstance(node, ast.AnnAssign):
            reason = body[at + 1] if at + 1 < len(body) else None
            assert isinstance(reason, ast.Expr), ast.unparse(node)
            assert len(ast.literal_eval(reason.value)) > 20, ast.unparse(node)


def test_constants_cannot_be_changed_but_replaced():
    with pytest.raises(FrozenInstanceError):
        Hyper().clip_limit = 3.0
    assert FactorConfig(hyper=Hyper(clip_limit=3.0)) != FactorConfig()
    assert FactorConfig(hyper=Hyper()) == FactorConfig()
