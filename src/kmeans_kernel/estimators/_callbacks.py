"""Listeners of a fit: the printer of `verbose`, a user's callback and scikit-learn's callbacks.

scikit-learn has callbacks from version 1.9 on (`sklearn.callback`); with an earlier version the
classifier has no `set_callbacks`, and all else is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

from kmeans_kernel.core.arrays.events import Event, FitProgress, OnEvent
from kmeans_kernel.estimators._progress import ProgressPrinter

_Method = TypeVar("_Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's mixin: there are no callbacks to support."""

    def with_callbacks(method: _Method) -> _Method:
        """Return the method: there are no callbacks to tear down."""
        return method


# Subtasks of a fit that scikit-learn's callbacks are told of.
_SUBTASKS = 100


def check_callback(callback: object) -> None:
    """Raise ValueError unless the callback of a fit can be called."""
    if not callable(callback):
        raise ValueError(
            "callback must be a function of one argument, an event of kmeans_kernel.events, or "
            f"None, got {callback!r}."
        )


class FitTask:
    """A fit as a task of scikit-learn's callbacks, and the listener that tells them of progress.

    Each hundredth of the fit is a subtask, so that `sklearn.callback.ProgressBar` shows one bar
    over the whole fit. Their wish to stop is not granted: scikit-learn passes it on at the end of
    iterations, and a fit is no sequence of models. An exception ends the fit.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        weights = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": weights}
        self._context = estimator._init_callback_context(max_subtasks=_SUBTASKS)
        self._context.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._done = 0

    def __call__(self, event: Event) -> None:
        """Tell the callbacks of the hundredths that are done."""
        if not isinstance(event, FitProgress):
            return
        while self._done < min(int(_SUBTASKS * event.fraction), _SUBTASKS):
            hundredth = self._context.subcontext(task_name=event.stage)
            hundredth.call_on_fit_task_begin(estimator=self._estimator)
            hundredth.call_on_fit_task_end(estimator=self._estimator)
            self._done += 1

    def end(self) -> None:
        """Tell the callbacks that the estimator is fitted."""
        self._context.call_on_fit_task_end(
            estimator=self._estimator, **self._data, reconstruction_attributes={}
        )


@contextmanager
def reporting(estimator: Any, listeners: Sequence[OnEvent], *, verbose: bool) -> Iterator[OnEvent]:
    """Yield one listener for all listeners and, if `verbose`, a printer."""
    if not verbose:
        yield _tell_all(listeners)
        return
    printer = ProgressPrinter()
    try:
        yield _tell_all([printer, *listeners])
        result = estimator.__dict__.get("_result")
        if result is not None:  # partial_fit has none yet
            printer.finish(result.held_out_error)
    finally:
        printer.close()


def _tell_all(listeners: Sequence[OnEvent]) -> OnEvent:
    """Return a listener that calls the listeners in turn, for one event at a time.

    Events may come from several threads. After an exception in a listener, which ends the fit, the
    threads that are still at work tell nobody.
    """
    lock, failed = Lock(), False

    def tell(event: Event) -> None:
        nonlocal failed
        with lock:
            if failed:
                return
            failed = True
            for listener in listeners:
                listener(event)
            failed = False

    return tell
