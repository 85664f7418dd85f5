"""The algorithms: states, configs, steps and codes. No files, no estimators."""
