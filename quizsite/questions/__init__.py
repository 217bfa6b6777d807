"""The bank: topics, questions, their immutable versions, and the kinds of question."""
