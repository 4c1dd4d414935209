"""Dagster's view: translate in, call one service, translate out."""
