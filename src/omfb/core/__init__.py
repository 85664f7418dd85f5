"""The algorithm: state, rule, steps and codes of blocks of rows. No files, no estimators."""
