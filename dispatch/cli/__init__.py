"""The one place that assembles ports and turns errors into an exit status."""
