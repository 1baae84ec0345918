"""Sphinx's settings for the site; scripts/site lays out the sources and runs it."""

import os

project = "specdec"
author = "the specdec authors"
copyright = "the specdec authors, Apache-2.0"  # noqa: A001
release = version = os.environ["SPECDEC_VERSION"]

extensions = ["myst_nb", "sphinx.ext.napoleon", "autoapi.extension"]
html_theme = "furo"
html_title = f"specdec {release}"
html_extra_path = [os.environ["SPECDEC_SITE_EXTRA"]]
exclude_patterns = ["docs/site"]

# Headings of the pages are what they link to.
myst_heading_anchors = 4
nb_execution_mode = "off"

autoapi_dirs = ["python/specdec"]
autoapi_root = "python-api"
autoapi_keep_files = False
autoapi_add_toctree_entry = False
autoapi_options = ["members", "undoc-members", "inherited-members", "show-module-summary", "imported-members"]
autoapi_python_class_content = "both"
autoapi_file_patterns = ["*.pyi", "*.py"]
napoleon_use_ivar = True  # or attributes would stand twice

# Configuration files of specdec are freer than TOML; the texts' licences are reached from the page of the pair.
suppress_warnings = ["autoapi.python_import_resolution", "misc.highlighting_failure", "toc.not_included"]
