"""Instructors' groups: classes, assignments, grade book, and what the numbers say of questions and labs."""
