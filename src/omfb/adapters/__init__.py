"""Bridges to neighbouring libraries: one folder or file for each."""
