"""The architectures, one file each."""
