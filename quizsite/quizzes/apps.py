"""The quizzes app."""

from django.apps import AppConfig


class QuizzesConfig(AppConfig):
    name = "quizsite.quizzes"
