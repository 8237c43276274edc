"""The method as pure functions on arrays, on numpy and scipy alone; nothing here is public.

Folders are the stages of the method, in reading order: arrays, clustering, kernels, model, solvers,
training. A stage imports only the stages before it.
"""
