"""Settings of the site that `tools/docs` builds; it is read by Sphinx alone."""

import re

project = "ascend-shims"
extensions = ["myst_parser"]
exclude_patterns = ["conf.py"]
html_theme = "furo"
html_title = "ascend-shims"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#8a1f11",
        "color-brand-content": "#8a1f11",
    },
    "dark_css_variables": {
        "color-brand-primary": "#ff9d8a",
        "color-brand-content": "#ff9d8a",
    },
}
# Headings can be linked to as on GitHub.
myst_heading_anchors = 4
smartquotes = False
nitpicky = True

_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"^- \[([^]]*)\]\(([^)#]+)\.md\)", re.MULTILINE)


def _navigation(_app, docname, source):
    """The index lists the pages in reading order; this is the navigation, too."""
    if docname != "index":
        return
    for title, body in _SECTION.findall(source[0]):
        pages = "\n".join(f"{text} <{page}>" for text, page in _LINK.findall(body))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def setup(app):
    app.connect("source-read", _navigation)
    return {"parallel_read_safe": True}
