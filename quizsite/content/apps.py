"""The content app."""

from django.apps import AppConfig


class ContentConfig(AppConfig):
    name = "quizsite.content"
