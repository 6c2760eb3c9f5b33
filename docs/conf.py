"""The site: MyST pages as they lie here, and a reference made of the docstrings.

Built by `python -m sphinx -W --keep-going docs docs/_build`, where pyop and the dependency group `docs` are installed.
No other library is needed. Nothing is fetched while it is built.
"""

import importlib
import importlib.util
import os
import re
from pathlib import Path

import pyop

# For figures that the build draws, where there is no screen.
os.environ.setdefault("MPLBACKEND", "Agg")

project = "pyop"
author = copyright = "The pyop developers"
version = release = pyop.__version__

extensions = [
    "myst_nb",  # with MyST's own parser in it
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "matplotlib.sphinxext.plot_directive",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "jupyter_execute", "**/.ipynb_checkpoints"]  # the second is where notebooks are run to
# .rst are the stubs of the reference, which autosummary writes in the first form that may be reStructuredText
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
root_doc = "index"
nitpicky = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
# Sessions and programs of the pages name their language; text that is output is no language.
highlight_language = "python"
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

# Notebooks are stored without outputs, and run when their page is read.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

templates_path = ["_templates"]
autosummary_generate = True
autosummary_imported_members = False
# The reference describes adapters to these libraries whether or not they are installed.
ADAPTED = ("dask", "jax", "onnxruntime", "pandas", "pytensor", "tensorflow", "torch", "xarray")
autodoc_mock_imports = [name for name in ADAPTED if importlib.util.find_spec(name) is None]
if "torch" in autodoc_mock_imports:
    autodoc_mock_imports.append("pyop.interop.torch_library")  # computes with torch's keys when it is imported
    importlib.import_module("scipy.stats")  # before the stand-ins come: it asks whether its arrays are torch's
autodoc_typehints = "none"  # the docstrings say types and shapes, in words
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # the template of classes has each member with its whole docstring
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
html_sidebars = {"index": [], "performance": [], "tutorial": []}


def without_empty_globs(app, docname, source):
    """Patterns of a table of contents that match no page yet, of which Sphinx warns."""
    if ":glob:" in source[0]:
        folder = Path(app.srcdir, docname).parent
        kept = [line for line in source[0].split("\n") if not re.fullmatch(r"\S+\*", line) or any(folder.glob(line))]
        source[0] = "\n".join(kept)


def draw_gallery(app):
    """Run the programs of examples/ whose pages are missing or old, as many at once as `-j` says."""
    spec = importlib.util.spec_from_file_location("pyop_gallery_make", Path(app.srcdir, "gallery", "make.py"))
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    gallery.make(at_once=app.parallel)


def setup(app):
    app.connect("builder-inited", draw_gallery)
    app.connect("source-read", without_empty_globs)
