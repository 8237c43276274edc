"""Run the server example of docs/shipping.md as written, on a free port."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.serve.processes import running

SHIPPING = Path(__file__).parents[2] / "docs" / "shipping.md"
WORDS = [sys.executable, "-m", "kmeans_kernel.cli"]


def run(command, folder):
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_the_example_of_the_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    section = SHIPPING.read_text().partition("## A server")[2].partition("\n## ")[0]
    _, fit, serve, *asking = re.findall(r"^ {4}(\S.*)$", section.partition("```")[0], re.MULTILINE)
    program = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    subprocess.run([*WORDS, *fit.split()[1:], "--quiet"], check=True)
    words = serve.partition("#")[0].split()[1:]
    with running([*WORDS, *words, "--port", "0"], tmp_path / "log") as server:
        asking = [line.replace("127.0.0.1:8000", server.host) for line in asking]
        answers = [run(line, tmp_path) for line in asking]
        assert json.loads(answers[-1])["labels"] == json.loads(answers[0])["labels"]
        program = program.replace("127.0.0.1:8000", server.host)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True
        )
    assert done.stdout.startswith("["), done.stderr
