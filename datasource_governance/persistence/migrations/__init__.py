"""Alembic's environment and versions of schema `governance`."""
