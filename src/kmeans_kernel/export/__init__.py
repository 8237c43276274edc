"""Export of fitted classifiers: model file, ONNX graph, and self-contained web page."""

from typing import TYPE_CHECKING

from kmeans_kernel.utils.contents import lazy_names

if TYPE_CHECKING:
    from kmeans_kernel.export.model_file import ModelFileError, load_model, save_model
    from kmeans_kernel.export.onnx import to_onnx
    from kmeans_kernel.export.web import Page, to_web

__all__ = ["ModelFileError", "Page", "load_model", "save_model", "to_onnx", "to_web"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "ModelFileError": "model_file",
        "Page": "web",
        "load_model": "model_file",
        "save_model": "model_file",
        "to_onnx": "onnx",
        "to_web": "web",
    },
)
