"""Addresses of files."""

from django.urls import path

from quizsite.content import bank_views, views

app_name = "content"
urlpatterns = [
    path("account/deck.apkg", views.anki_deck, name="anki"),
    path("authoring/upload/", bank_views.upload, name="upload"),
    path("authoring/upload/<int:upload_id>/", bank_views.dry_run, name="dry-run"),
    path("authoring/bank.<str:form>", bank_views.download, name="download"),
]
