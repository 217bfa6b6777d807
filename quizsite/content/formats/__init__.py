"""The bank in other programs' formats."""
