"""The site's addresses."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("quizsite.accounts.urls")),
    path("classes/", include("quizsite.classes.urls")),
    path("", include("quizsite.content.urls")),
    path("", include("quizsite.labs.urls")),
    path("", include("quizsite.quizzes.urls")),
]
