"""Taking questions: the front page, the list, the question page, and answers."""
