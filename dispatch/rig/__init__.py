"""A whole zdo in a temporary folder, with a `claude`, sessions and rows that are none."""
