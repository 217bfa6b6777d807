"""The site: who learns, the labs, the questions, taking them, and what goes in and out as files."""
