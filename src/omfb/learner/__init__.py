"""`Learner`, and fits of a learner to a stream: what estimators, CLI and Dask wrap."""
