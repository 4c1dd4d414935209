"""Evaluation: the only place that looks inside rows (SPEC section 5)."""
