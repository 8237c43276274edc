"""The configuration that tests of training start from."""

from kmeans_kernel.core.kernels.kernels import Gaussian
from kmeans_kernel.core.training.config import TrainingConfig

# Kernel, regularization and lift are left open.
OPEN = TrainingConfig(
    n_representatives=10,
    search_size=False,
    may_shrink=False,
    init="random",
    tol=1e-6,
    max_iter=300,
    boundary_fraction=0.0,
    fit_on="samples",
    kernel=(Gaussian(1.0),),
    regularization=None,
    lift=None,
    feature_scales=None,
    feature_transform=None,
    loss="squared",
)
