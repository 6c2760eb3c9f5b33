"""The site: MyST pages as they lie here, and a reference made of the docstrings.

Built by `python -m sphinx -W --keep-going docs docs/_build`, where pyop and the dependency group `docs` are installed.
Nothing is fetched while it is built.
"""

import os

import pyop

# For figures that the build draws, where there is no screen.
os.environ.setdefault("MPLBACKEND", "Agg")

project = "pyop"
author = copyright = "The pyop developers"
version = release = pyop.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # the second for the stubs of the reference
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
# Sessions and programs of the pages name their language; text that is output is no language.
highlight_language = "python"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # the docstrings say types and shapes, in words
autodoc_member_order = "groupwise"
numpydoc_show_class_members = True
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False
numpydoc_xref_param_type = False

plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("svg", 100)]

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "pyop"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "pyop"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
}
html_sidebars = {"index": [], "performance": []}
