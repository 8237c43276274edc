"""A server whose model waits for a file, or raises, for rows with marker values.

python slow_server.py FOLDER LIMITS
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from kmeans_kernel.serve import Limits, create_app, run

WAIT, FAIL, REFUSE = 7, 13, 17


class Slow:
    classes_ = np.array(["a", "b"])
    n_features_in_ = 2

    def __init__(self, folder):
        self.folder = folder

    def predict_proba(self, X):
        if (X == FAIL).any():
            raise RuntimeError("the number was 13")
        if (X == REFUSE).any():
            raise ValueError("a row must not hold 17.")
        if (X == WAIT).any():
            with (self.folder / "begun").open("a") as begun:
                begun.write(f"{len(X)}\n")
            while not (self.folder / "go").exists():
                time.sleep(0.005)
        return np.where(X[:, :1] > 0, [[0.25, 0.75]], [[0.75, 0.25]])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    app = create_app({"slow": Slow(folder)}, limits=Limits(**json.loads(sys.argv[2])))
    run(app, port=0, on_start=lambda address: sys.stderr.write(f"at {address}\n"))
