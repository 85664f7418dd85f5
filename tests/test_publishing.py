"""What a release needs: the recipe, the workflows and the metadata agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest

import omfb

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_python_of_the_classifiers_is_tested():
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", matrix) == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_recipe_has_the_version_and_the_requirements():
    recipe = (ROOT / "conda.recipe/meta.yaml").read_text(encoding="utf-8")
    assert f'version = "{omfb.__version__}"' in recipe
    extras = PROJECT["optional-dependencies"]
    for requirement in [*PROJECT["dependencies"], *extras["cli"]]:
        name, bound = requirement.split(">=")
        assert f"- {name} >={bound}" in recipe


@pytest.mark.parametrize("workflow", ["tests.yml", "publish.yml"])
def test_make_targets_of_a_workflow_exist(workflow):
    text = (ROOT / ".github/workflows" / workflow).read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make (\S+)", text):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_every_template_is_yaml():
    yaml = pytest.importorskip("yaml")
    for path in (ROOT / ".github").rglob("*.yml"):
        assert yaml.safe_load(path.read_text(encoding="utf-8"))
