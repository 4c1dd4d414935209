"""Postgres: the only place that knows SQL."""
