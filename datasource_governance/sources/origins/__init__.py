"""Declared origins, which are read again: databases, addresses and functions."""
