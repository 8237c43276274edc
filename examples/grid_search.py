"""GridSearchCV around our classifier, its fits on the workers of a Dask cluster.

    python examples/grid_search.py [tcp://scheduler:8786]

Without an address a cluster of two processes is started here. Any backend of joblib does: that of
Ray is `joblib.parallel_config(backend="ray")`.
"""

import sys

import joblib
from distributed import Client, LocalCluster
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.data import load_digits


def main(address=None):
    digits = load_digits()
    X_train, X_test = (X.reshape(len(X), -1) for X in (digits.X_train, digits.X_test))
    model = make_pipeline(
        StandardScaler(),
        KMeansKernelClassifier(
            regularization=1e-4, feature_scales=None, kernel="rbf", gamma=0.5, random_state=0
        ),
    )
    grid = {"kmeanskernelclassifier__n_representatives": [5, 10, 20, 40]}
    search = GridSearchCV(model, grid, cv=3, n_jobs=-1)
    cluster = address or LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with Client(cluster) as client, joblib.parallel_config(backend="dask"):
        search.fit(X_train, digits.y_train)
        print(f"{len(client.scheduler_info()['workers'])} workers")
    if address is None:
        cluster.close()
    for setting, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        q = setting["kmeanskernelclassifier__n_representatives"]
        print(f"{q:3d} representatives of each class: {100 * (1 - score):.2f} % held-out error")
    error = 100 * (1 - search.score(X_test, digits.y_test))
    print(f"the best, on the test images: {error:.2f} % error")


if __name__ == "__main__":
    main(*sys.argv[1:])
