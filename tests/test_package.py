"""The package as a whole: its names, and what importing it costs."""

import importlib
import importlib.metadata
import importlib.resources
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import omfb
import omfb.plots
import omfb.streams


def in_new_process(code):
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", omfb.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(omfb, name)
    assert value.__doc__
    assert getattr(value, "__module__", value.__name__).startswith("omfb")
    assert name in dir(omfb)


def test_star_import_gives_exactly_the_public_names():
    names = {}
    exec("from omfb import *", names)
    names.pop("__builtins__")
    assert set(names) == set(omfb.__all__)
    assert len(omfb.__all__) == len(set(omfb.__all__))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        omfb.nonsense  # noqa: B018


def test_importing_loads_nothing_heavy():
    loaded = in_new_process("import json, sys, omfb; print(json.dumps(sorted(sys.modules)))")
    heavy = {
        "numba",
        "sklearn",
        "scipy",
        "numpy",
        "pandas",
        "polars",
        "matplotlib",
        "dask",
        "typer",
    }
    assert heavy.isdisjoint(loaded)


def test_loading_everything_compiles_nothing():
    code = """
import json
import numba
compiled = []
compile_ = numba.core.dispatcher.Dispatcher.compile
numba.core.dispatcher.Dispatcher.compile = lambda self, sig: (
    compiled.append(self.__name__), compile_(self, sig))[1]
import omfb
for name in omfb.__all__:
    getattr(omfb, name)
omfb.OMFB()
first = list(compiled)
import numpy
omfb.OMFB(1).fit(numpy.eye(3))
print(json.dumps([first, compiled]))
"""
    at_import, at_fit = in_new_process(code)
    assert at_import == []
    assert at_fit  # or else nothing was counted


def test_the_version_is_the_installed_one():
    assert importlib.metadata.version("omfb") == omfb.__version__


def test_the_citation_and_the_changelog_are_of_this_version():
    root = Path(__file__).resolve().parent.parent
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {omfb.__version__}\n" in citation
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changes, flags=re.MULTILINE)[0] == omfb.__version__


def test_the_typing_marker_is_shipped():
    assert importlib.resources.files("omfb").joinpath("py.typed").is_file()


def test_only_public_names_are_listed():
    assert dir(omfb) == sorted([*omfb.__all__, "__version__"])
