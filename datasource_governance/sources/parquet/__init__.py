"""Parquet, weighed before it is decoded. Source: SPEC section 3."""
