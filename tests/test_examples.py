import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name):
    command = [sys.executable, str(EXAMPLES / name)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_text_and_embeddings():
    errors = dict(re.findall(r"(\w+, [\w -]+): ([\d.]+) % error", run("text.py")))
    errors = {name: float(value) for name, value in errors.items()}
    assert errors["text, kmeans-kernel"] <= errors["text, logistic regression"] + 2
    assert errors["embeddings, kmeans-kernel"] <= errors["embeddings, logistic regression"] / 5


def test_a_grid_search_on_a_cluster():
    said = run("grid_search.py")
    assert "2 workers" in said
    errors = [float(found) for found in re.findall(r"([\d.]+) % held-out error", said)]
    assert len(errors) == 4
    assert errors[-1] < errors[0]
    assert float(re.search(r"test images: ([\d.]+) %", said)[1]) < 5
