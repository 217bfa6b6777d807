"""The panels, each over real runs of the toy."""
