"""What Sphinx is told, in the folder that `rlt docs` stages (host/rltools_host/documentation)."""

from rltools_host.tree import TREE

project = "rlt"
html_title = "rlt: learning on the microcontroller"
extensions = ["myst_nb", "rltools_host.documentation.site"]
root_doc = "docs/index"
exclude_patterns = ["build", "runs"]
templates_path: list[str] = []

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
myst_url_schemes = ["http", "https", "mailto", "tree"]
# Documents begin with #; some of another tool's have more levels than one in a step.
suppress_warnings = ["myst.header"]

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300  # s, of a cell
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # would be fetched from elsewhere

html_theme = "furo"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = [str(TREE.root / "docs" / "static")]
html_favicon = str(TREE.root / "host" / "rltools_host" / "web" / "page" / "icon.svg")
html_css_files = ["site.css"]
pygments_style = "default"
pygments_dark_style = "github-dark"
highlight_language = "none"
