"""Figure 2 of the paper: patches, by majority and by summed scores.

    python -m experiments.figure2

At the paper's 21 values of Q: two runs up to 1000, one above; some hours. The patches are those of
the paper's text, 25 × 25, and of its author's script, 26 × 26. See experiments/figure1.py.
"""

from __future__ import annotations

from experiments.figure1 import main

if __name__ == "__main__":
    main("figure2")
