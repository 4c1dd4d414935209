"""PLACEHOLDER until the real one is there: overwrite this file."""


def check_version(before, after):
    return None
