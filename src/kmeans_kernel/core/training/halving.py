"""Search for the hyperparameters of tables by successive halving.

Many candidates are tried on a small problem (few rows, few landmarks), the survivors on a larger
one. In order: kernel families, widths and feature transforms; feature scales (AGOP) in rounds; the
logistic loss, whose best kernel is wider than that of the squared loss; then the best few on the
larger problem, with their width, regularization and scales refined; last the number of
representatives. Each decision is made by held-out samples that the fits have not seen.

K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter
optimization", AISTATS 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kmeans_kernel.core.arrays.encoding import (
    ColumnEncoding,
    EncodingKind,
    FeatureMap,
    learn_encoding,
)
from kmeans_kernel.core.arrays.events import CandidateTried
from kmeans_kernel.core.arrays.execution import Run
from kmeans_kernel.core.arrays.feature_transform import (
    has_one_unit,
    learn_asinh,
    learn_standard,
)
from kmeans_kernel.core.arrays.matrices import Array, Matrix, dense, is_sparse
from kmeans_kernel.core.arrays.rows import (
    LabelledRows,
    TrainingRows,
    basis_size,
    stratified_sample,
    with_typical_lift,
)
from kmeans_kernel.core.arrays.sphere import SphereMap
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.training.config import MOST_ENCODED_COLUMNS, TrainingConfig
from kmeans_kernel.core.training.exact_ridge import fit_exact, search_exact
from kmeans_kernel.core.training.search import hold_out, is_significantly_lower
from kmeans_kernel.core.training.trials import (
    FIRST_POWER,
    POWERS,
    Parts,
    Trial,
    TrialFold,
    TrialProblem,
    kernel_at,
)


class Sizes(NamedTuple):
    """The most rows and landmarks of the small and the large problem."""

    small_rows: int
    large_rows: int
    small_landmarks: int
    large_landmarks: int


# The sizes of the problems for tables below and from `MANY_ROWS` rows: where the final fit takes
# seconds, a search of one second finds better hyperparameters. Landmarks are at least some per
# class, and at most a share of the training rows of a fold.
MANY_ROWS = 6000
_SIZES, _SIZES_OF_MANY = Sizes(2500, 4000, 100, 250), Sizes(4000, 6000, 200, 400)

# The same for tables with more than `_WIDE` features, steps not counted. A few hundred columns or
# levels, each with a small effect, span more directions than 250 landmarks have: a table of 60
# places with four letters each lost to a linear model.
_WIDE = 100
_SIZES_OF_WIDE, _SIZES_OF_MANY_WIDE = Sizes(2500, 4000, 200, 500), Sizes(4000, 6000, 300, 700)

_SMALL_PER_CLASS, _LARGE_PER_CLASS = 4, 12
_SHARE_OF_ROWS = 0.3

# The encodings of numbers that are tried, the one that is searched most thoroughly first.
_ENCODINGS: tuple[EncodingKind, ...] = ("both", "standard")

# Where the large problem has the rows of the small one and at most this many times its landmarks,
# it is the only one: two would cost more than they save.
_MUCH_LARGER = 1.5

# Folds: number of parts, and number of parts that are held out in turn, up to so many rows. Many
# where rows are few, a fit is cheap and a single part would say little.
_FOLDS = ((400, 3, 3), (800, 3, 2), (np.inf, 4, 1))

# Widths 2γ = 2ᵏ: range of k; first points for smooth kernels and for kernels with a cusp, whose
# best γ is smaller.
_WIDTHS = (-4, 10)
_FIRST_SMOOTH, _FIRST_CUSP = (-1, 2, 5), (-3, 0, 3)

# The most rounds of the recursive feature machine on the small problem, and on the large one.
_ROUNDS, _LARGE_ROUNDS = 2, 1

# Feature scales whose ratio is below this change nothing.
_ALIKE = 1.25

# The logistic loss is tried at these widths relative to the best of the squared loss, and with this
# power of its regularization.
_LOGISTIC_WIDTHS, _LOGISTIC_POWER = (0, -3), -3


# A kernel family or a transform that is worse by more than so many standard errors is given up.
_HOPELESS = 2.0

# All rows are tried as representatives where the labels of nearest neighbours improve held-out
# probabilities by more than so many standard errors, and up to so many rows.
_CLEAR_GAIN, _MOST_EXACT_ROWS = 4.0, 12_000

# Exact kernel ridge regression: the most training samples of a fold in the search for kernel and
# ridge; then in the trial of the best, for tables below and from `MANY_ROWS` rows.
_EXACT_ROWS, _EXACT_FIT, _EXACT_FIT_OF_MANY = 800, 2000, 4500

# Above this number of rows, piecewise-linear encoding must lower the held-out loss to this share:
# it has many features, which make the final fit several times as slow.
_MANY_FOR_STEPS, _CLEARLY_LOWER = 150_000, 0.9

# Brier scores that differ by less are as good: where classes are told apart without error, tiny
# differences may be significant.
_NOTICEABLE = 1e-3


@dataclass(frozen=True, eq=False)
class Searched:
    """The outcome of the search.

    Attributes
    ----------
    trial : the best trial, on the large problem
    sphere_map : the map of all rows to the sphere; its lift is still to be set
    enough_landmarks : number of landmarks of the best trial if a quarter of them predicts as well,
        so that more would not help; else None
    exact : whether all rows are to be representatives
    """

    trial: Trial
    sphere_map: SphereMap
    enough_landmarks: int | None = None
    exact: bool = False


@dataclass(frozen=True, eq=False)
class Halving:
    """Successive halving over the open hyperparameters of a configuration.

    Attributes
    ----------
    config : the configuration
    run : executor, listener, random generator, deadline
    """

    config: TrainingConfig
    run: Run

    def search(self, rows: TrainingRows) -> Searched:
        """Search on a stratified sample of the rows."""
        most = (_SIZES if len(rows) < MANY_ROWS else _SIZES_OF_MANY).large_rows
        sample = rows.load() if len(rows) <= most else self._sample(rows, most)
        transforms = transforms_to_try(sample, self.config)
        sizes = _sizes(len(rows), min(_n_without_steps(one, sample.X) for one in transforms))
        exact = replace(sample, X=dense(sample.X[:]).astype(np.float64, copy=False))
        small, large = self._parts(exact, sizes)
        # Shares of the time of the search: without a large problem the rest is short.
        shares = (0.33, 0.66, 0.9, 0.9) if small is large else (0.15, 0.33, 0.45, 0.65)
        plain = self._screen(transforms, small)
        self.run.report(shares[0])
        scaled: list[Trial] = []
        # Every transform gets its scales before they are compared: those of steps can undo what
        # steps do to a smooth function.
        for trial in plain if self.config.feature_scales else []:
            scaled += self._scale(trial, _ROUNDS, scaled)
        self.run.report(shares[1])
        if len(rows) > _MANY_FOR_STEPS and not steps_pay([*plain, *scaled]):
            plain, scaled = without_steps(plain), without_steps(scaled)
        survivors = self._try_losses(plain, scaled)
        self.run.report(shares[2])
        found = survivors if small is large else self._try_on_large(survivors, large)
        self.run.report(shares[3])
        best = self._refine(found)
        self.run.report(0.95)
        if not self._may_need_all_rows(best, len(rows)):
            return Searched(best, _joint_map(best), self._enough_landmarks(best))
        most = _EXACT_FIT if len(rows) < MANY_ROWS else _EXACT_FIT_OF_MANY
        best, is_exact = self._try_all_rows(best, most)
        return Searched(best, _joint_map(best), exact=is_exact)

    def _sample(self, rows: TrainingRows, most: int) -> LabelledRows:
        return stratified_sample(rows, most, self.run.rng)

    def _parts(self, sample: LabelledRows, sizes: Sizes) -> tuple[Parts, Parts]:
        """Return the folds of the small and of the large problem; the small ones are subsets."""
        n_folds, used = next(counts for most, *counts in _FOLDS if len(sample) < most)
        folds = list(hold_out(sample, n_folds, self.run.rng))[:used]
        large = Parts(folds, self._landmarks(folds, sizes.large_landmarks, _LARGE_PER_CLASS))
        if len(sample) > sizes.small_rows:
            share = sizes.small_rows / len(sample)
            # Held-out rows are cheap, and make the comparisons sharper: all of them are kept.
            folds = [(self._thin(train, share), test) for train, test in folds]
        fewer = self._landmarks(folds, sizes.small_landmarks, _SMALL_PER_CLASS)
        if len(sample) <= sizes.small_rows and large.n_landmarks <= _MUCH_LARGER * fewer:
            return large, large
        return Parts(folds, fewer), large

    def _thin(self, rows: LabelledRows, share: float) -> LabelledRows:
        return stratified_sample(rows, int(np.ceil(share * len(rows))), self.run.rng)

    def _landmarks(
        self, folds: Sequence[tuple[LabelledRows, LabelledRows]], most: int, per_class: int
    ) -> int:
        train = folds[0][0]
        wanted = max(most, per_class * len(train.classes))
        given = basis_size(train, self.config.n_representatives)
        return max(1, min(wanted, round(_SHARE_OF_ROWS * train.n_copies), given))

    def _problem(
        self, parts: Parts, scales: Sequence[Array | None], near: Sequence[TrialFold] = ()
    ) -> TrialProblem:
        """Map the folds to the sphere and cluster them.

        `scales` has the feature scales of each fold. `near` has the same folds under other scales,
        from whose clusters K-means starts.
        """

        def build(index: int) -> TrialFold:
            train, test = parts.folds[index]
            sphere_map = SphereMap(0.0, scales[index])
            if self.config.lift is None:
                sphere_map = with_typical_lift(train, sphere_map)
            else:
                sphere_map = replace(sphere_map, lift=self.config.lift)
            lifted = train.on_sphere(sphere_map)
            clusters = near[index].clusters if near else None
            tested = test.on_sphere(sphere_map)
            return TrialFold.of(lifted, tested, parts.n_landmarks, clusters, groups)

        executor = self.run.executor
        groups = None if parts.transform is None else parts.transform.groups
        return TrialProblem(executor.map(build, range(len(parts.folds))), parts, executor)

    def _screen(self, transforms: Sequence[FeatureMap | None], small: Parts) -> list[Trial]:
        """Try transforms, kernel families and widths on the small problem; the best first."""
        found: list[Trial] = []
        for transform in transforms:
            if found and self.run.is_out_of_time():
                break
            problem = self._problem(small.transformed(transform), [None] * len(small.folds))
            # The asinh transform moves the best width little.
            near = bool(found) and transform is not None
            families = [self._near(found[0])] if near else self._families()
            power = found[0].power if near else FIRST_POWER
            best = _smooth_if_as_good(self._best_width(problem, families, power))
            found.append(best if near else self._around(best))
        return sorted(found, key=lambda trial: trial.mean_loss)

    def _families(self) -> list[tuple[Kernel, Sequence[int]]]:
        """Return the kernels to try with their first widths; no widths for a given kernel."""
        kernel = self.config.kernel
        if not isinstance(kernel, tuple):
            return [(kernel, ())]
        return [(one, _FIRST_SMOOTH if one.is_smooth else _FIRST_CUSP) for one in kernel]

    def _best_width(
        self,
        problem: TrialProblem,
        families: Sequence[tuple[Kernel, Sequence[int]]],
        power: int,
    ) -> Trial:
        """Try the given widths of each family; go on beyond the best while it is the outermost."""
        tried: dict[tuple[str, int | None], Trial] = {}
        pending = [
            one
            for kernel, widths in families
            for one in ([kernel_at(kernel, width) for width in widths] or [kernel])
        ]
        while pending and not (tried and self.run.is_out_of_time()):
            for trial in self._try_squared(problem, pending, power):
                tried[trial.kernel.name, trial.width] = trial
            best = min(tried.values(), key=lambda trial: trial.mean_loss)
            power = best.power
            pending = _beyond(best, [k for name, k in tried if name == best.kernel.name])
            if len(families[0][1]) == 0:
                break
        return best

    def _try_squared(
        self, problem: TrialProblem, kernels: Sequence[Kernel], power: int
    ) -> list[Trial]:
        found = problem.try_squared(kernels, self._ridge_lambda(), power)
        self._report(found)
        return found

    def _report(self, trials: Sequence[Trial]) -> None:
        if self.run.on_event is not None:
            for trial in trials:
                self.run.on_event(CandidateTried(trial.kernel, trial.error))

    def _ridge_lambda(self) -> float | None:
        """Return λ of the squared loss, None to search: with loss="logistic" λ is not for it."""
        return None if self.config.loss == "logistic" else self.config.regularization

    def _around(self, trial: Trial) -> Trial:
        """Return the best of a trial and its neighbours in width."""
        given = trial.width is None or not isinstance(self.config.kernel, tuple)
        if given or self.run.is_out_of_time():
            return trial
        kernels = _neighbours(trial)
        tried = self._try_squared(trial.problem, kernels, trial.power)
        return min([trial, *tried], key=lambda one: one.mean_loss)

    def _scale(self, plain: Trial, rounds: int, before: Sequence[Trial]) -> list[Trial]:
        """Learn feature scales in rounds, while the held-out loss falls; then try other kernels.

        Returns the best trial with scales, or nothing. A trial that is hopelessly behind one of
        `before`, those with another transform, is not followed.
        """
        last, found = plain, list[Trial]()
        for _ in range(rounds):
            if self.run.is_out_of_time():
                break
            problem = self._rescaled(last)
            alike = all(_are_alike(scales) for scales in problem.scales)
            if alike and self.config.feature_scales == "auto":
                break
            if found:
                trial = self._try_squared(problem, [last.kernel], last.power)[0]
            else:
                trial = self._best_width(problem, [self._near(last)], last.power)
            found.append(trial)
            if not _rivals([trial], before):
                return found
            if trial.mean_loss >= last.mean_loss:
                break
            last = trial
        if not found:
            return []
        best = self._around(min(found, key=lambda trial: trial.mean_loss))
        return [min([best, *self._other_families(best)], key=lambda trial: trial.mean_loss)]

    def _rescaled(self, trial: Trial) -> TrialProblem:
        """Return the problem of a trial with feature scales learned by the trial."""
        problem = trial.problem
        return self._problem(problem.parts, trial.learn_scales(), problem.folds)

    def _near(self, trial: Trial) -> tuple[Kernel, Sequence[int]]:
        if trial.width is None or not isinstance(self.config.kernel, tuple):
            return trial.kernel, ()
        return trial.kernel, (trial.width, trial.width + 1)

    def _other_families(self, best: Trial) -> list[Trial]:
        """Try the other kernel families at about the width of the best trial."""
        if best.width is None or not isinstance(self.config.kernel, tuple):
            return []
        shift = 2 if best.kernel.is_smooth else -2
        others = [
            (one, (best.width - (shift if one.is_smooth != best.kernel.is_smooth else 0),))
            for one in self.config.kernel
            if one.name != best.kernel.name
        ]
        if not others or self.run.is_out_of_time():
            return []
        return [self._best_width(best.problem, others, best.power)]

    def _try_losses(self, plain: Sequence[Trial], scaled: Sequence[Trial]) -> list[Trial]:
        """Return the trials to go on with, best Brier score first, the logistic loss included."""
        if self.config.feature_scales == "learned" and scaled:
            plain = []
        trials = [*scaled, *plain]
        if self._tries_logistic():
            # The map to the sphere is chosen with the squared loss, which costs less.
            best = min(trials, key=lambda trial: trial.mean_loss)
            near = [
                best,
                *_rivals([trial for trial in trials if _kind(trial) != _kind(best)], [best]),
            ]
            around = self.run.executor.map(self._logistic_around, near)
            logistic = [one for found in around for one in found]
            trials = logistic if self.config.loss == "logistic" else [*trials, *logistic]
        return survivors_of(trials)

    def _tries_logistic(self) -> bool:
        searched = self.config.loss is None and self.config.regularization is None
        in_time = not self.run.is_out_of_time()
        return self.config.loss == "logistic" or (searched and in_time)

    def _logistic_around(self, trial: Trial) -> list[Trial]:
        """Try the logistic loss at the width of a trial and at wider kernels of each family."""
        problem, near = trial.problem, [trial]
        if trial.width is not None and isinstance(self.config.kernel, tuple):
            wider = [max(_WIDTHS[0], trial.width + step) for step in _LOGISTIC_WIDTHS[1:]]
            kernels = [kernel_at(trial.kernel, width) for width in wider]
            for other in self.config.kernel:
                if other.name != trial.kernel.name:
                    shift = -2 if trial.kernel.is_smooth else 2
                    width = min(max(trial.width + shift - 1, _WIDTHS[0]), _WIDTHS[1])
                    kernels.append(kernel_at(other, width))
            near += self._try_squared(problem, kernels, trial.power)
        start = [_with_power(one, one.power + _LOGISTIC_POWER) for one in near]
        found = problem.try_logistic(start, self.config.regularization)
        self._report(found)
        best = min(found, key=lambda one: one.mean_brier)
        return [best if self.config.regularization is not None else problem.walk_logistic(best)]

    def _try_on_large(self, survivors: Sequence[Trial], large: Parts) -> list[Trial]:
        """Try the survivors on the large problem, with the maps learned on the small one.

        Survivors with the same map share a problem; problems are worked on side by side.
        """
        groups: dict[tuple[int, int], list[Trial]] = {}
        for trial in survivors:
            mine = trial.problem
            key = id(mine.parts.transform), id(mine.scales[0])
            groups.setdefault(key, []).append(trial)

        def try_group(trials: list[Trial]) -> list[Trial]:
            if trials[0] is not survivors[0] and self.run.is_out_of_time():
                return []
            small = trials[0].problem
            problem = self._problem(large.transformed(small.parts.transform), small.scales)
            return [
                self._refine_lambda(self._try_on(problem, [trial.kernel], trial)[0])
                for trial in trials
            ]

        return [one for found in self.run.executor.map(try_group, groups.values()) for one in found]

    def _refine(self, trials: Sequence[Trial]) -> Trial:
        """Refine widths and feature scales of the best trials, and return the best."""
        best = min(trials, key=lambda trial: trial.mean_brier)
        found = [*trials, self._refine_width(best)]
        first = min(found, key=lambda trial: trial.mean_brier)
        best = self._refine_scales(first)
        plain = [trial for trial in found if _scales(trial) is None]
        if _scales(best) is not None and plain and self.config.feature_scales == "auto":
            # Feature scales may follow noise: they are kept if they are significantly better, and
            # more than what the folds differ in.
            rival = min(plain, key=lambda trial: trial.mean_brier)
            better = is_significantly_lower(rival.brier, best.brier, best.problem.weights)
            if not better or _are_alike(_joint_map(best).scales):
                return rival
        return best if best is first else self._refine_width(best)

    def _refine_lambda(self, best: Trial) -> Trial:
        """Search λ of the logistic loss; that of the squared loss is found already."""
        searched = self.config.regularization is None and best.loss == "logistic"
        if not searched or self.run.is_out_of_time():
            return best
        found = best.problem.walk_logistic(best)
        self._report([found])
        return found

    def _try_on(self, problem: TrialProblem, kernels: Sequence[Kernel], near: Trial) -> list[Trial]:
        """Try kernels with the loss of another trial, from its regularization."""
        if near.loss == "squared":
            return self._try_squared(problem, kernels, near.power)
        start = [
            Trial(problem, kernel, near.power, near.regularization, "squared", folds,
                  near.scores, near.losses)
            for kernel, folds in zip(kernels, problem.whiten(kernels), strict=True)
        ]  # fmt: skip
        found = problem.try_logistic(start, self.config.regularization)
        self._report(found)
        return found

    def _refine_scales(self, best: Trial) -> Trial:
        if _scales(best) is None:
            return best
        for _ in range(_LARGE_ROUNDS):
            if self.run.is_out_of_time():
                break
            problem = self._rescaled(best.problem.with_ridge(best))
            trial = self._try_on(problem, [best.kernel], best)[0]
            if trial.mean_brier >= best.mean_brier:
                break
            best = trial
        return best

    def _refine_width(self, best: Trial) -> Trial:
        if not isinstance(self.config.kernel, tuple) or self.run.is_out_of_time():
            return best
        tried = self._try_on(best.problem, _neighbours(best), best)
        return min([best, *tried], key=lambda one: one.mean_brier)

    def _may_need_all_rows(self, best: Trial, n: int) -> bool:
        """Return whether single rows may predict better than centroids, and are not too many."""
        config = self.config
        is_open = config.may_shrink and config.regularization is None and config.loss is None
        is_open &= isinstance(config.kernel, tuple) and best.width is not None
        in_time = n <= _MOST_EXACT_ROWS and not self.run.is_out_of_time()
        is_perfect = best.mean_brier < _NOTICEABLE
        return is_open and in_time and not is_perfect and best.gain_of_neighbours() > _CLEAR_GAIN

    def _try_all_rows(self, best: Trial, most: int) -> tuple[Trial, bool]:
        """Try exact kernel ridge regression, and return the better trial and whether it is that.

        Kernel and ridge are searched on a share of the training samples, and tried on `most`.
        """
        parts, executor = best.problem.parts, self.run.executor
        families = self.config.kernel if isinstance(self.config.kernel, tuple) else ()
        exact = search_exact(best, families, _EXACT_ROWS, executor)
        if any(len(train) > _EXACT_ROWS for train, _ in parts.folds):
            exact = fit_exact(exact, most, executor)
        self._report([exact])
        wins = is_significantly_lower(best.brier, exact.brier, best.problem.weights)
        return (exact, True) if wins else (best, False)

    def _enough_landmarks(self, best: Trial) -> int | None:
        """Try the best trial with a quarter of the landmarks."""
        if not self.config.may_shrink or self.run.is_out_of_time():
            return None
        parts = best.problem.parts
        fewer = max(len(parts.folds[0][0].classes), parts.n_landmarks // 4)
        problem = self._problem(replace(parts, n_landmarks=fewer), best.problem.scales)
        trial = self._try_on(problem, [best.kernel], best)[0]
        noticeable = trial.mean_brier - best.mean_brier > _NOTICEABLE
        significant = is_significantly_lower(trial.brier, best.brier, problem.weights)
        return None if noticeable and significant else len(best.problem.folds[0].landmarks)


def _sizes(n: int, n_features: int) -> Sizes:
    """Return the sizes of the problems for a table of n rows."""
    if n_features > _WIDE:
        return _SIZES_OF_WIDE if n < MANY_ROWS else _SIZES_OF_MANY_WIDE
    return _SIZES if n < MANY_ROWS else _SIZES_OF_MANY


def _n_without_steps(transform: FeatureMap | None, X: Matrix) -> int:
    """Return the number of features of a transform, those of steps not counted."""
    n_features = int(X.shape[1]) if transform is None else transform.n_features
    return n_features - _n_steps(transform)


def _n_steps(transform: FeatureMap | None) -> int:
    return len(transform.step_columns) if isinstance(transform, ColumnEncoding) else 0


def steps_pay(trials: Sequence[Trial]) -> bool:
    """Return whether piecewise-linear encoding lowers the loss clearly, or is the only one."""
    losses = [trial.mean_loss for trial in trials]
    simple = [trial.mean_loss for trial in without_steps(trials)]
    return not simple or min(losses) < _CLEARLY_LOWER * min(simple)


def without_steps(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials whose numbers are not coded by steps."""
    return [trial for trial in trials if _kind(trial) not in ("both", "piecewise")]


def transforms_to_try(rows: LabelledRows, config: TrainingConfig) -> list[FeatureMap | None]:
    """Return the feature transforms to try; None for rows as they come."""
    if config.feature_transform is None or is_sparse(rows.X):
        return [None]
    X, weights = dense(rows.X[:]), rows.row_weights
    kinds = _kinds_to_try(X, config)
    found = [_learn_transform(X, weights, kind, config) for kind in kinds]
    # Without numbers of more than two values there are no steps beside values.
    are_alike = kinds is _ENCODINGS and _n_steps(found[0]) == 0
    return found[1:] if are_alike else found


def _kinds_to_try(X: Array, config: TrainingConfig) -> Sequence[EncodingKind | None]:
    """Return how numbers are to be encoded: as given, else the kinds that are worth a trial."""
    if config.feature_transform is not None and config.feature_transform != "auto":
        return [config.feature_transform]
    if config.n_levels is None and has_one_unit(X):
        return ["standard", None]
    if config.fit_on == "representatives" or X.shape[1] > MOST_ENCODED_COLUMNS:
        return ["standard"]
    return _ENCODINGS


def _learn_transform(
    X: Array, weights: Array, kind: EncodingKind | None, config: TrainingConfig
) -> FeatureMap | None:
    """Learn a transform; numbers without steps, none of them missing, need no column encoding."""
    if kind is None:
        return None
    if config.n_levels is None and kind == "standard":
        return learn_standard(X, weights)
    if config.n_levels is None and kind == "asinh":
        return learn_asinh(X, weights)
    return learn_encoding(X, weights, config.n_levels or (0,) * X.shape[1], kind)


def survivors_of(trials: Sequence[Trial]) -> list[Trial]:
    """Return the best trial by Brier score, and the best of other kinds, to be tried on more rows.

    Few landmarks favour smooth kernels, and few rows favour no feature scales. So the best trial
    with another kernel family and the best one with the other kind of map go on, too, and the best
    one with another transform if it may still win.
    """
    ranked = sorted(trials, key=lambda trial: trial.mean_brier)
    best = ranked[0]
    family = [trial for trial in ranked if trial.kernel.name != best.kernel.name]
    scaled = [trial for trial in ranked if (_scales(trial) is None) != (_scales(best) is None)]
    others = [trial for trial in ranked if _kind(trial) != _kind(best)]
    hopeless = others and is_significantly_lower(
        others[0].brier, best.brier, best.problem.weights, _HOPELESS
    )
    return list(dict.fromkeys([best, *family[:1], *scaled[:1], *([] if hopeless else others[:1])]))


def _rivals(others: Sequence[Trial], known: Sequence[Trial]) -> list[Trial]:
    """Return the best of the other trials by loss, unless it is hopelessly behind a known one."""
    if not others or not known:
        return list(others)
    rival, best = (min(some, key=lambda trial: trial.mean_loss) for some in (others, known))
    weights = best.problem.weights
    behind = is_significantly_lower(rival.losses, best.losses, weights, _HOPELESS)
    return [] if behind else [rival]


def _kind(trial: Trial) -> str | None:
    """Return the kind of the feature transform; None for rows as they come."""
    transform = trial.problem.parts.transform
    return None if transform is None else transform.kind


def _smooth_if_as_good(trial: Trial) -> Trial:
    """Return the best trial with a smooth kernel, unless the given one is significantly better.

    The feature scales are learned with this kernel. Few held-out samples decide between the two by
    chance; a fixed preference was as good on development tables, and repeats itself.
    """
    smooth = [one for one in trial.problem.tried.values() if one.kernel.is_smooth]
    if trial.kernel.is_smooth or not smooth:
        return trial
    rival = min(smooth, key=lambda one: one.mean_loss)
    worse = is_significantly_lower(rival.losses, trial.losses, trial.problem.weights)
    return trial if worse else rival


def _beyond(best: Trial, widths: Sequence[int | None]) -> list[Kernel]:
    """Return the kernel one step beyond the best width, if that is the outermost of those tried."""
    known = sorted(width for width in widths if width is not None)
    if best.width is None or len(known) < 1:
        return []
    step = known[1] - known[0] if len(known) > 1 else 1
    beyond = []
    if best.width == known[-1]:
        beyond.append(best.width + step)
    elif best.width == known[0]:
        beyond.append(best.width - step)
    return [kernel_at(best.kernel, k) for k in beyond if _WIDTHS[0] <= k <= _WIDTHS[1]]


def _neighbours(trial: Trial) -> list[Kernel]:
    """Return the kernels with half and with twice the γ of a trial."""
    if trial.width is None:
        return []
    widths = (trial.width - 1, trial.width + 1)
    return [kernel_at(trial.kernel, k) for k in widths if _WIDTHS[0] <= k <= _WIDTHS[1]]


def _with_power(trial: Trial, power: int) -> Trial:
    """Return a trial with another k of the regularization 10^(k/2)."""
    power = min(max(power, POWERS[0]), POWERS[1])
    return replace(trial, power=power, regularization=10.0 ** (power / 2))


def _are_alike(scales: Array | None) -> bool:
    return scales is None or bool(scales.max() < _ALIKE * scales.min())


def _scales(trial: Trial) -> object:
    return trial.problem.scales[0]


def _joint_map(trial: Trial) -> SphereMap:
    """Return the map of a trial for all rows: the root mean square of the scales of its folds."""
    scales = None
    if trial.problem.scales[0] is not None:
        squares = [one**2 for one in trial.problem.scales if one is not None]
        scales = np.sqrt(np.mean(squares, axis=0))
    return SphereMap(0.0, scales, trial.problem.parts.transform)
