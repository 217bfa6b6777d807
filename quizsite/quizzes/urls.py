"""The learner's addresses."""

from django.urls import path

from quizsite.quizzes import (
    account_views,
    attempt_views,
    desk_views,
    list_views,
    preview,
    privacy_views,
    progress_views,
    views,
)

app_name = "quizzes"
urlpatterns = [
    path("", views.front, name="front"),
    path("next/", views.next_question, name="next"),
    path("questions/", list_views.questions, name="questions"),
    path("answers/<int:answer_id>/marks/", views.mark, name="mark"),
    path("questions/<slug:slug>/", views.question, name="question"),
    path("questions/<slug:slug>/save/", desk_views.save, name="save"),
    path("questions/<slug:slug>/report/", desk_views.report, name="report"),
    path("quiz/", attempt_views.quiz_home, name="drills"),
    path("quiz/start/", attempt_views.start, name="start"),
    path("quiz/<uuid:attempt_id>/", attempt_views.attempt, name="attempt"),
    path("quiz/<uuid:attempt_id>/finish/", attempt_views.finish, name="finish"),
    path("quiz/<uuid:attempt_id>/<int:position>/", attempt_views.slot, name="slot"),
    path("quiz/<uuid:attempt_id>/<int:position>/draft/", attempt_views.draft, name="draft"),
    path("authoring/preview/", preview.preview, name="preview"),
    path("mock/", attempt_views.mock_home, name="mock"),
    path("review/", attempt_views.review_home, name="review"),
    path("account/", privacy_views.account, name="account"),
    path("account/export/", privacy_views.export, name="export"),
    path("account/delete/", privacy_views.delete, name="delete"),
    path("account/sign-up/", account_views.sign_up, name="sign-up"),
    path("account/sign-in/", account_views.sign_in, name="sign-in"),
    path("account/sign-out/", account_views.sign_out, name="sign-out"),
    path("progress/", progress_views.progress_page, name="progress"),
]
