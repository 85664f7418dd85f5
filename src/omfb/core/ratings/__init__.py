"""Ratings of items by users: a factor model in which each user and each item has a posterior."""
