"""What became of everything, as figures: read from the journal, as lines, one object, one page."""
