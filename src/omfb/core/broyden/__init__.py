"""The paper: online matrix factorisation by Broyden updates, and its extensions."""
