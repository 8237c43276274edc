import re
import subprocess
import sys
from pathlib import Path

TEXT = Path(__file__).parent.parent / "examples" / "text.py"


def test_text_and_embeddings():
    done = subprocess.run([sys.executable, str(TEXT)], capture_output=True, text=True, check=True)
    errors = dict(re.findall(r"(\w+, [\w -]+): ([\d.]+) % error", done.stdout))
    errors = {name: float(value) for name, value in errors.items()}
    assert errors["text, kmeans-kernel"] <= errors["text, logistic regression"] + 2
    assert errors["embeddings, kmeans-kernel"] <= errors["embeddings, logistic regression"] / 5
