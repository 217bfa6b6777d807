"""The learner's addresses."""

from django.urls import path

from quizsite.quizzes import views

app_name = "quizzes"
urlpatterns = [
    path("", views.front, name="front"),
    path("next/", views.next_question, name="next"),
    path("questions/", views.questions, name="questions"),
    path("answers/<int:answer_id>/marks/", views.mark, name="mark"),
    path("questions/<slug:slug>/", views.question, name="question"),
]
