"""Addresses of classes, all below /classes/."""

from django.urls import path

from quizsite.classes import assignment_views, grading_views, teacher_views, views

app_name = "classes"
A_CLASS = "<int:class_id>/"
AN_ASSIGNMENT = f"{A_CLASS}assignments/<int:assignment_id>/"
urlpatterns = [
    path("", views.classes, name="classes"),
    path("join/", views.join, name="join"),
    path("join/<slug:code>/", views.join_link, name="join-link"),
    path("new/", teacher_views.new_class, name="new-class"),
    path(A_CLASS, views.klass_page, name="class"),
    path(f"{A_CLASS}leave/", views.leave, name="leave"),
    path(f"{A_CLASS}edit/", teacher_views.edit_class, name="edit-class"),
    path(f"{A_CLASS}code/", teacher_views.code, name="code"),
    path(f"{A_CLASS}names/", teacher_views.names, name="names"),
    path(f"{A_CLASS}roster/", teacher_views.roster, name="roster"),
    path(f"{A_CLASS}roster/<int:membership_id>/", teacher_views.member, name="member"),
    path(f"{A_CLASS}fitting/", assignment_views.fitting, name="fitting"),
    path(f"{A_CLASS}assignments/new/", assignment_views.new_assignment, name="new-assignment"),
    path(AN_ASSIGNMENT, assignment_views.assignment, name="assignment"),
    path(f"{AN_ASSIGNMENT}edit/", assignment_views.edit_assignment, name="edit-assignment"),
    path(f"{AN_ASSIGNMENT}choose/", assignment_views.questions, name="questions"),
    path(f"{AN_ASSIGNMENT}state/", assignment_views.state, name="state"),
    path(f"{AN_ASSIGNMENT}extra/", assignment_views.extra, name="extra"),
    path(f"{AN_ASSIGNMENT}start/", views.start, name="start"),
    path(f"{A_CLASS}marking/", grading_views.marking, name="marking"),
    path(f"{A_CLASS}marking/<int:answer_id>/", grading_views.mark, name="mark"),
    path(f"{A_CLASS}grades/", grading_views.grades, name="grades"),
    path(f"{A_CLASS}grades.csv", grading_views.grades_csv, name="grades-csv"),
]
