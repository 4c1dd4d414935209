"""What happened here, as OpenLineage events."""
