"""Becoming an account."""

import re
from typing import Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm, UserCreationForm
from django.core.exceptions import ValidationError

from quizsite.accounts import tries
from quizsite.accounts.models import User

TAKEN_BY_THE_SITE = ("guest-", "deleted-")


class SignUpForm(UserCreationForm[User]):
    """A name, a password, and an e-mail address for those who want to be able to reset it."""

    class Meta(UserCreationForm.Meta):  # its field writes a name as the sign-in will
        model = User
        fields = ("username", "email")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.pop("username", None)  # a guest's is made up
        self.fields["username"].help_text = "Letters, digits and @ . + - _"
        self.fields["email"].widget.attrs["autocomplete"] = "email"
        self.fields["email"].help_text = "You may leave it out. Without it a forgotten password is gone for good."

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if name.lower().startswith(TAKEN_BY_THE_SITE):
            raise ValidationError(f"A name must not begin with {' or '.join(TAKEN_BY_THE_SITE)}, got {name[:30]}")
        same = rf"^{re.escape(name)}$"  # for SQLite's iexact Émile and émile are two names
        if User.objects.filter(username__iregex=same).exclude(pk=self.instance.pk).exists():
            raise ValidationError(f"The name {name} is taken.")
        return name


class SignInForm(AuthenticationForm):
    """Name and password; a name that was tried too often has to wait."""

    error_messages = AuthenticationForm.error_messages | {
        "invalid_login": "This name and this password do not belong together. Capitals count in both."
    }

    def clean(self) -> dict[str, Any]:
        if self.errors:  # no password, no try
            return self.cleaned_data
        tries.begin(self.cleaned_data["username"])
        cleaned: dict[str, Any] = super().clean()
        tries.forget(self.cleaned_data["username"])
        return cleaned


class StaffSignInForm(AdminAuthenticationForm, SignInForm):
    """The admin's own door, which counts with the other."""


class EmailForm(forms.ModelForm[User]):
    """The address to which a forgotten password is sent."""

    class Meta:
        model = User
        fields = ("email",)
