"""The classes app."""

from django.apps import AppConfig


class ClassesConfig(AppConfig):
    name = "quizsite.classes"
