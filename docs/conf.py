"""How the documentation is built: `make docs`, or `make docs-quick` without running the gallery."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import omfb

project = "omfb"
author = "The omfb developers"
copyright = "the omfb developers"
version = release = omfb.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "command_reference",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery", "**/README.md"]

html_theme = "pydata_sphinx_theme"
html_title = f"omfb {version}"
html_static_path = ["_static"]
html_css_files = ["omfb.css"]
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_sidebars = {"tutorial": [], "coming-from": [], "changes": []}
html_show_sourcelink = False
html_copy_source = False

# Single backticks in docstrings name parameters and objects of omfb.
default_role = "py:obj"
autosummary_generate = True
# scikit-learn's own methods, and those that the command line uses.
autosummary_context = {
    "hidden_members": [
        "adopt", "allowed", "checked_config", "checked_rows", "current_config", "current_state",
        "facts_header", "facts_tensors", "fit_source", "read_facts",
        "get_metadata_routing", "n_passes", "score_held_out", "set_callbacks", "set_output",
    ]
}  # fmt: skip
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]


sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "plot_gallery": "True",
}

# Docstrings of estimators, plots, metrics, data sets and images: each has a summary, and describes
# all of its parameters and what it returns.
numpydoc_validation_checks = {"GL08", "SS01", "SS04", "PR01", "PR02", "PR03", "PR04", "RT01"}
numpydoc_validation_exclude = {
    r"^omfb\.(broyden|factor|formats|persistence|streams|Info|Learner)",  # for programmers
    r"^(?!omfb\.)",
    r"\.(get_params|set_params|fit_transform)$",  # scikit-learn's
}
