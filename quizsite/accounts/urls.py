"""Passwords: changed, and reset by e-mail. Django's own views with the site's pages."""

from django.contrib.auth import views
from django.contrib.auth.decorators import user_passes_test
from django.urls import path, reverse_lazy
from django.utils.text import format_lazy

app_name = "accounts"

ACCOUNT = reverse_lazy("quizzes:account")
with_password = user_passes_test(lambda user: user.is_authenticated and not user.is_guest)  # the others sign in first

urlpatterns = [
    path(
        "account/password/",
        with_password(
            views.PasswordChangeView.as_view(
                template_name="accounts/password.html", success_url=format_lazy("{}?kept=password", ACCOUNT)
            )
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
            template_name="accounts/reset_confirm.html", success_url=reverse_lazy("accounts:reset-done")
        ),
        name="reset-confirm",
    ),
    path(
        "account/reset/done/",
        views.PasswordResetCompleteView.as_view(template_name="accounts/reset_done.html"),
        name="reset-done",
    ),
]
