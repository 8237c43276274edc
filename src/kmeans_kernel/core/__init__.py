"""The method as pure functions on arrays, with numpy and scipy alone; nothing here is public.

Folders are its stages, in reading order: arrays, clustering, kernels, model, solvers, training. A
stage imports the stages before it.
"""
