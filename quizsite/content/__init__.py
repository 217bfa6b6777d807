"""What goes in and out as files: the bank and the labs as YAML."""
