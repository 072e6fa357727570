"""Policies: frozen values, and checks, that each answer one question."""
