"""What OpenLineage calls the datasets of this product.

Source: SPEC section 14; OpenLineage, "Naming Conventions".
"""


def current_dataset(tenant: str, datasource: str) -> tuple[str, str]:
    """Return namespace and name of what is current of a datasource."""
    return _namespace(tenant), f"{datasource}.current"


def stage_dataset(tenant: str, datasource: str) -> tuple[str, str]:
    """Return namespace and name of the stages of a datasource."""
    return _namespace(tenant), f"{datasource}.stage"


def _namespace(tenant: str) -> str:
    return f"datasource_governance://{tenant}"
