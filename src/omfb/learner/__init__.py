"""What a fitted model is and how it learns from a stream: everything else wraps this."""
