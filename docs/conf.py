"""How the docs site is built: `make docs`, without the network and with warnings as errors.

What only the package knows is asked of it while building: docstrings, JSON Schemas, the changelog.
"""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import mmdr
from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from datasource_governance.domain.document_schemas import (
    artifact_reference_schema,
    producer_evidence_schema,
)
from datasource_governance.domain.json_schema import policy_schema
from datasource_governance.domain.policy_version import PolicyKind

ROOT = Path(__file__).parent.parent

project = "datasource_governance"
author = "the datasource_governance authors"
release = metadata.version("datasource-governance")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
# docs/adr/index.md includes it, so that the folder has an index where it is browsed, too.
exclude_patterns = ["_build", "adr/README.md"]

nitpicky = True
# Nothing is fetched while building, so only our own names can be looked up.
nitpick_ignore_regex = [(r"py:.*", r"(?!datasource_governance\b).*")]

myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
# Docstrings write code as Markdown does.
default_role = "code"
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "Datasource governance"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False


class Diagram(SphinxDirective):
    """A Mermaid diagram, drawn while building, so that no browser has to load a script for it."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the drawing on a card of its own, which is light in the dark mode, too."""
        name = f"diagram-{self.env.new_serialno('diagram')}"
        source = "\n".join(['%%{init: {"theme": "neutral"}}%%', *self.content])
        drawing = mmdr.render(source).svg().replace("merman", name)
        card = "background: white; border-radius: 0.5rem; margin: 1rem 0; padding: 1rem"
        return [nodes.raw("", f'<figure style="{card}">{drawing}</figure>', format="html")]


class PolicySchema(SphinxDirective):
    """The JSON Schema of a policy kind, as `policy schema --kind KIND` prints it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the schema as a block of JSON."""
        schema = policy_schema(PolicyKind(self.arguments[0]))
        text = json.dumps(schema, indent=2, ensure_ascii=False)  # noqa: TID251 - shown, not hashed
        return [nodes.literal_block(text, text, language="json")]


class DocumentSchema(SphinxDirective):
    """The JSON Schema of a document that producers send."""

    required_arguments = 1
    _schemas: ClassVar = {
        "artifact-reference": artifact_reference_schema,
        "producer-evidence": producer_evidence_schema,
    }

    def run(self) -> list[nodes.Node]:
        """Return the schema as a block of JSON."""
        schema = self._schemas[self.arguments[0]]()
        text = json.dumps(schema, indent=2, ensure_ascii=False)  # noqa: TID251 - shown, not hashed
        return [nodes.literal_block(text, text, language="json")]


class Changelog(SphinxDirective):
    """What the fragments in `changelog.d` say of the next release."""

    def run(self) -> list[nodes.Node]:
        """Return the sections that towncrier would write."""
        command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "next"]
        draft = subprocess.run(  # noqa: S603 - nothing of it comes from outside
            command, cwd=ROOT, capture_output=True, text=True, check=True
        )
        # Their title holds the day of building.
        _title, _, sections = draft.stdout.strip().partition("\n\n")
        text = f"\n{sections}".replace("\n### ", "\n## ")
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add what the pages use beyond Sphinx and MyST."""
    app.add_directive("mermaid", Diagram)
    app.add_directive("policy-schema", PolicySchema)
    app.add_directive("document-schema", DocumentSchema)
    app.add_directive("changelog", Changelog)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True}
