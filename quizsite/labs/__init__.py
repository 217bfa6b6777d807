"""Live panels on the engine: labs, runs, their judging and their event stream."""
