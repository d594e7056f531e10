"""THE DECISION and the human: what the facts mean, what is kept, what is said."""

__version__ = "0.1.0"
