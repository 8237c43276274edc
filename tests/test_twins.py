"""Every public function of the core has a slow, obvious twin, or a reason why it has none.

`TWINS` names the twin in tests/reference, or the test that has one inside; `REASONS` has the other
functions. A function that is in neither fails here, so that CONTRIBUTING.md stays true.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import kmeans_kernel.core as core

TESTS = Path(__file__).parent

TWINS = {
    "arrays.matrices": {
        "multiply_into": "matrices.product",
        "product_blocks": "matrices.product",
        "gathered_product_blocks": "matrices.product",
        "paired_products": "matrices.paired_products",
        "squared_lengths": "matrices.squared_lengths",
        "largest_entries": "matrices.largest_entries",
        "scale_rows": "matrices.scale_rows",
        "scale_columns": "matrices.scale_columns",
        "append_column": "matrices.append_column",
        "join_rows": "core/arrays/test_matrices.py",
    },
    "arrays.execution": {"sum_over": "core/arrays/test_execution.py"},
    "arrays.rows": {
        "merge_equal_rows": "core/arrays/test_rows.py",
        "with_typical_lift": "core/arrays/test_rows.py",
        "water_fill": "core/arrays/test_rows.py",
    },
    "arrays.column_order": {"order_of_columns": "column_order.order_of_columns"},
    "arrays.encoding": {"learn_encoding": "encoding.knots"},
    "arrays.feature_transform": {
        "learn_standard": "feature_transforms.standardise",
        "learn_asinh": "feature_transforms.asinh",
    },
    "arrays.sphere": {"unit_rows": "sphere.unit_rows", "unlift": "sphere.unlift"},
    "clustering.assignment": {
        "assign": "spherical_kmeans.assign",
        "reassign": "spherical_kmeans.assign",
        "nearest_sums": "spherical_kmeans.cluster_sums",
        "own_similarities": "spherical_kmeans.dot",
        "cluster_sums": "spherical_kmeans.cluster_sums",
        "update_sums": "spherical_kmeans.cluster_sums",
    },
    "clustering.representatives": {"represent": "spherical_kmeans.cluster"},
    "clustering.spherical_kmeans": {
        "cluster": "spherical_kmeans.cluster",
        "move_centroids": "spherical_kmeans.move_centroids",
        "mean_deviation": "spherical_kmeans.mean_deviation",
        "distances": "spherical_kmeans.mean_deviation",
        "turned_angles": "core/clustering/test_spherical_kmeans.py",
        "warm_started": "core/clustering/test_representatives.py",
    },
    "kernels.gram": {"gram_matrix": "kernels.gram_matrix"},
    "kernels.kernels": {
        "kernel_values": "kernels.kernel_values",
        "kernel_matrix": "kernels.gram_matrix",
    },
    "model.conformal": {"thresholds": "conformal.threshold"},
    "model.attributions": {
        "shapley_values": "attributions.shapley_values",
        "integrated_gradients": "attributions.integrated_gradients",
    },
    "model.agop": {
        "learn_scales": "agop.learn_scales",
        "mean_squared_gradients": "agop.squared_gradients",
        "average_gradient_outer_product": "agop.average_gradient_outer_product",
    },
    "model.fitted_model": {"margins": "model.margin"},
    "model.temperature": {
        "fit_temperature": "temperature.log_loss",
        "brier_losses": "temperature.brier_losses",
    },
    "solvers.blas": {
        "factor_tile": "cholesky.factor",
        "divide_from_left": "cholesky.divide_from_left",
        "divide_from_right": "core/solvers/test_blas.py",
        "subtract_square": "core/solvers/test_blas.py",
        "subtract_product": "core/solvers/test_blas.py",
        "cholesky_lower": "core/solvers/test_blas.py",
        "solve_lower": "core/solvers/test_blas.py",
        "invert_lower": "cholesky.divide_from_left",
    },
    "solvers.lbfgs": {"minimize": "core/solvers/test_lbfgs.py"},
    "solvers.cholesky": {
        "factor_in_place": "cholesky.factor",
        "solve_in_place": "cholesky.solve",
    },
    "solvers.conjugate_gradients": {
        "solve_by_conjugate_gradients": "nystrom.solve",
        "conjugate_gradients": "nystrom.conjugate_gradients",
    },
    "solvers.dual": {
        "solve_on_representatives": "dual.solve",
        "refine": "dual.solve",
    },
    "solvers.logistic": {
        "fit_logistic": "logistic.solve",
        "loss_sums": "logistic.loss_sums",
        "log_loss_and_residuals": "logistic.loss_sums",
        "unpack_loss_sums": "logistic.loss_sums",
    },
    "solvers.nystrom": {
        "whitened_blocks": "nystrom.whitened_features",
        "held_whitened_blocks": "nystrom.whitened_features",
        "kernel_blocks": "core/solvers/test_nystrom.py",
        "float32_kernel_blocks": "core/solvers/test_nystrom.py",
        "left_out_scores": "nystrom.left_out_scores",
        "rounding_noise": "core/solvers/test_nystrom.py",
    },
    "solvers.preconditioner": {
        "estimate_covariance": "nystrom.estimate_covariance",
        "sample_equations": "nystrom.normal_equations",
    },
    "training.trials": {
        "on_grid": "core/training/test_trials.py",
        "cluster_classes": "spherical_kmeans.cluster",
        "lloyd": "spherical_kmeans.cluster",
    },
    "training.boundary": {
        "add_boundary_rows": "boundary.boundary_rows",
        "own_margins": "boundary.own_margin",
        "is_represented": "boundary.is_represented",
        "nearest_counts": "boundary.nearest_counts",
    },
    "training.cross_validation": {
        "ridge_path": "nystrom.solve",
        "logistic_path": "logistic.solve",
        "dual_path": "dual.solve",
    },
    "training.exact_ridge": {
        "search_exact": "core/training/test_exact_ridge.py",
        "fit_exact": "core/training/test_exact_ridge.py",
    },
    "training.search": {
        "downhill": "core/training/test_search.py",
        "squared_losses": "core/training/test_search.py",
    },
}

_LINE = "one line of NumPy, or a question: a twin would be the same line"
_CUTS = "cuts a length into slices: a test sees that every row is in one"
_CHANCE = "draws at random: its properties are tested"
_ORDER = "orders the calls of functions that have twins; the models are held to other identities"
_NAMES = "names and ranges of kernels, no arithmetic; round trips and refusals are tested"
_INSIDE = "a part of kernel_matrix, gram_matrix and ExactGram, which have twins"
_SOLVED = "a step of solvers whose solutions are held to twins"
_RULE = "a rule of thumb with measured constants; a twin would repeat them"

REASONS = {
    "arrays.execution": {"listening": _LINE, "ambient_listener": _LINE, "deal": _CUTS},
    "arrays.lazy": {"takes_lazy_rows": _LINE},
    "arrays.matrices": {
        "column_blocks": _CUTS, "blocks_of": _CUTS, "cached_row_blocks": _CUTS,
        "row_blocks": _CUTS, "block_height": _CUTS, "is_sparse": _LINE, "row_width": _LINE,
        "n_rows": _LINE, "dense": _LINE, "as_counts": _LINE,
    },
    "arrays.rows": {"basis_size": _LINE, "draw": _CHANCE, "stratified_sample": _CHANCE},
    "arrays.feature_transform": {"has_one_unit": _RULE, "has_several_units": _RULE},
    "arrays.stream": {"blocks_changed": _LINE, "concatenate_rows": _LINE},
    "clustering.representatives": {"busy_share": _RULE},
    "clustering.spherical_kmeans": {"draw_centroids": _CHANCE},
    "kernels.kernels": {
        "register": _NAMES, "parameter": _NAMES, "kernel_parameters": _NAMES,
        "kernel_to_dict": _NAMES, "kernel_from_dict": _NAMES, "check_parameter": _NAMES,
        "unit_rows_for": _LINE, "tile_rows": _INSIDE, "tiles_up_to_diagonal": _INSIDE,
        "kernel_tiles": _INSIDE,
    },
    "solvers.lbfgs": {"no_pairs": _LINE},
    "model.temperature": {"label_smoothing": _LINE},
    "solvers.logistic": {"whitening_pays": _RULE},
    "solvers.nystrom": {
        "nugget": _RULE, "sample_size": _RULE, "sampling_pays": _RULE,
        "directions_for_cosines": _LINE, "cosines": _LINE,
        "without_own_influence": _SOLVED, "divide_by": _SOLVED, "relative_norm": _LINE,
        "factor_with_ridge": _SOLVED, "identity": _LINE, "block_equations": _SOLVED,
        "factor_landmarks": _SOLVED,
    },
    "training.boundary": {"share_with_boundary": _LINE},
    "training.fit": {
        "fit_coefficients": _ORDER, "prefers_conjugate_gradients": _RULE, "calibrate": _ORDER,
        "feature_type": _RULE,
    },
    "training.halving": {
        "survivors_of": _LINE, "transforms_to_try": _ORDER, "steps_pay": _LINE,
        "without_steps": _LINE,
    },
    "training.trials": {"kernel_at": _LINE},
    "training.model_size": {"search_size": _ORDER},
    "training.search": {
        "search": _ORDER, "is_significantly_lower": _LINE, "deal_folds": _CHANCE,
        "hold_out": _CHANCE,
    },
    "training.train": {"train": _ORDER, "refuse_out_of_core": _LINE},
    "training.tuning": {
        "restrict_to_width": _LINE, "leaves_open": _LINE, "tune": _ORDER, "rescale": _LINE,
        "smaller_problem": _CHANCE, "moments_of": _LINE,
    },
}  # fmt: skip


def public_functions():
    for module in pkgutil.walk_packages(core.__path__, "kmeans_kernel.core."):
        found = importlib.import_module(module.name)
        for name, value in vars(found).items():
            own = inspect.isfunction(value) and value.__module__ == module.name
            if own and not name.startswith("_"):
                yield module.name.removeprefix("kmeans_kernel.core."), name


def named(*tables):
    return [(module, name) for table in tables for module, names in table.items() for name in names]


def test_every_function_has_a_twin_or_a_reason():
    assert sorted(public_functions()) == sorted(named(TWINS, REASONS))


@pytest.mark.parametrize(("module", "name"), named(TWINS))
def test_twins_are_there_and_tested(module, name):
    """A test file names both the function and its twin."""
    twin = TWINS[module][name]
    if twin.endswith(".py"):
        assert re.search(rf"\b{name}\b", (TESTS / twin).read_text())
        return
    home, function = twin.split(".")
    assert hasattr(importlib.import_module(f"tests.reference.{home}"), function)
    texts = [path.read_text() for path in TESTS.rglob("test_*.py") if path.name != "test_twins.py"]
    both = [
        re.search(rf"\b{function}\b", text) and re.search(rf"\b{name}\b", text) for text in texts
    ]
    assert any(both), twin
