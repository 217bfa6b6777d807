"""The panels: what their templates are given, ready to be shown."""
