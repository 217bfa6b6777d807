"""The labs app."""

from django.apps import AppConfig


class LabsConfig(AppConfig):
    name = "quizsite.labs"
