"""Addresses of files."""

from django.urls import path

from quizsite.content import views

app_name = "content"
urlpatterns = [path("account/deck.apkg", views.anki_deck, name="anki")]
