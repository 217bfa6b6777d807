"""The questions app."""

from django.apps import AppConfig


class QuestionsConfig(AppConfig):
    name = "quizsite.questions"
