"""Dask collections: answers that stay lazy, and fits by many machines."""
