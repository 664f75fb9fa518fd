"""How Sphinx builds the site: `make docs`, offline."""

from __future__ import annotations

import importlib.metadata
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

import euda

project = "euda"
author = "The authors of euda"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
release = importlib.metadata.version("euda")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
nitpicky = True
# Types of other packages, and our own that are no part of the public door: there is no page to link them to.
nitpick_ignore_regex = [("py:.*", r"(?!euda\.[A-Za-z_]+$).*")]
highlight_language = "none"  # a block without a language is text
pygments_style = "tango"

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

default_role = "code"  # docstrings write `name` for code
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["stable_baselines3", "tensordict", "torch", "torchrl"]  # extras: not in the lock
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
add_module_names = False
viewcode_line_numbers = True

html_theme = "furo"
html_title = f"euda {release}"
html_static_path = ["static"]
html_css_files = ["euda.css"]
html_show_copyright = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b35c00", "color-brand-content": "#2f6fb3"},
    "dark_css_variables": {"color-brand-primary": "#ffa657", "color-brand-content": "#79b8ff"},
}


def name_files_outside(app: Sphinx, document: str, source: list[str]) -> None:
    """Files of the repository that are no part of the site are named instead of linked."""
    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2`)", source[0])


def describe_data(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Tables such as `euda.TASKS` are described where they are written, not by the docstring of their type."""
    attribute = name.removeprefix("euda.")
    if what == "data" and attribute in euda.__all__:
        lines[:] = ModuleAnalyzer.for_module(euda._HOME[attribute]).find_attr_docs()["", attribute]


def setup(app: Sphinx) -> None:
    """Sphinx's entry."""
    app.connect("source-read", name_files_outside)
    app.connect("autodoc-process-docstring", describe_data)
