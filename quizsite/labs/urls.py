"""The laboratory's addresses."""

from django.urls import path

from quizsite.labs import model_pages, stream, views

app_name = "labs"
urlpatterns = [
    path("lab/", views.open_lab, name="open"),
    path("lab/models/", model_pages.models_page, name="models"),
    path("lab/models/missing/", model_pages.missing, name="missing"),
    path("lab/panel/<slug:name>/", views.open_panel, name="panel"),
    path("lab/<slug:slug>/", views.lab_page, name="lab"),
    path("runs/<uuid:run_id>/", views.run_page, name="run"),
    path("runs/<uuid:run_id>/stream/", stream.run_stream, name="stream"),
    path("runs/<uuid:run_id>/picture.svg", views.run_picture, name="picture"),
    path("runs/<uuid:run_id>/steps/", views.run_steps, name="steps"),
    path("runs/<uuid:run_id>/stop/", views.stop_run, name="stop"),
    path("runs/<uuid:run_id>/take/", views.take_token, name="take"),
    path("runs/<uuid:run_id>/share/", views.share_run, name="share"),
]
