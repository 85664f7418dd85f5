"""One file for each format: how it is opened, written and rewritten."""

from .opening import is_stream, open_stream

__all__ = ["is_stream", "open_stream"]
