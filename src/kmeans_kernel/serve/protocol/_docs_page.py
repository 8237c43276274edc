"""The page at /docs: the OpenAPI document as one self-contained HTML page."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any

from kmeans_kernel.serve.protocol._openapi import BASE_URL

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 1rem 0 0; }
h2 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem; margin: 1rem 0; }
p { margin: .25rem 0 .5rem; }
code, pre { font: .875rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: .25rem; padding: .5rem; margin: .5rem 0 0;
      white-space: pre-wrap; overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 3.25rem; }
button { font: inherit; font-size: .875rem; padding: .25rem .75rem; margin-top: .5rem; }
"""

_SCRIPT = """
for (const button of document.querySelectorAll("button")) {
  button.addEventListener("click", async () => {
    const example = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(example.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(example);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
"""


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# Content-Security-Policy: the page loads nothing, and only the style and script above apply.
SECURITY_POLICY = (
    f"default-src 'none'; style-src {_digest(_STYLE)}; script-src {_digest(_SCRIPT)}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def render_docs_page(document: dict[str, Any], base: str) -> str:
    """Return the HTML of an OpenAPI document, with the server's address in its examples."""
    info = document["info"]
    sections = "\n".join(
        _section(path, method, operation, base)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])}</title>
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>{escape(info["title"])} {escape(info["version"])}</h1>
<p>{escape(info.get("description", ""))}</p>
<p>The same in machine-readable form: <a href="openapi.json">openapi.json</a>.</p>
{sections}
</main>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _section(path: str, method: str, operation: dict[str, Any], base: str) -> str:
    examples = "\n".join(
        f"<pre><code>{escape(sample['source'].replace(BASE_URL, base))}</code></pre>\n"
        '<button type="button">Copy</button>'
        for sample in operation.get("x-codeSamples", [])
    )
    return f"""<section>
<h2><span class="method">{method.upper()}</span> <code>{escape(path)}</code></h2>
<p>{escape(operation.get("summary", ""))}. {escape(operation.get("description", ""))}</p>
{_columns(operation)}{examples}
</section>"""


def _columns(operation: dict[str, Any]) -> str:
    """Return the columns of a row as a list, for a model that takes rows by name."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    properties = content.get("schema", {}).get("properties", {})
    row = properties.get("rows", {}).get("items", {})
    if "properties" not in row:
        return ""
    items = "\n".join(
        f"<li><code>{escape(name)}</code>: {escape(told['description'])}</li>"
        for name, told in row["properties"].items()
    )
    return f"<p>{escape(row['description'])}</p>\n<ul>\n{items}\n</ul>\n"
