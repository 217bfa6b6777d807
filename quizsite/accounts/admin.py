"""Accounts in the admin."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from quizsite.accounts.forms import StaffSignInForm
from quizsite.accounts.models import User

admin.site.register(User, UserAdmin)
admin.site.login_form = StaffSignInForm
