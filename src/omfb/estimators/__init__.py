"""`OMFB`, `OnlineFactorAnalysis` and `OMFBImputer`, with scikit-learn's interface."""
