"""Passwords: changed, and reset by e-mail. Django's own views with the site's pages."""

from django.contrib.auth import views
from django.urls import path, reverse_lazy

app_name = "accounts"
urlpatterns = [
    path(
        "account/password/",
        views.PasswordChangeView.as_view(
            template_name="accounts/password.html", success_url=reverse_lazy("quizzes:account")
        ),
        name="password",
    ),
    path(
        "account/reset/",
        views.PasswordResetView.as_view(
            template_name="accounts/reset.html",
            email_template_name="accounts/reset_mail.txt",
            subject_template_name="accounts/reset_subject.txt",
            success_url=reverse_lazy("accounts:reset-sent"),
        ),
        name="reset",
    ),
    path(
        "account/reset/sent/",
        views.PasswordResetDoneView.as_view(template_name="accounts/reset_sent.html"),
        name="reset-sent",
    ),
    path(
        "account/reset/<uidb64>/<token>/",
        views.PasswordResetConfirmView.as_view(
            template_name="accounts/reset_confirm.html", success_url=reverse_lazy("quizzes:sign-in")
        ),
        name="reset-confirm",
    ),
]
