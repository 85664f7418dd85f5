"""`OMFB` and `OMFBImputer`: the model behind scikit-learn's interface."""
