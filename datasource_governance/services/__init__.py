"""Use cases: load, decide by one pure function, save; one transaction each."""
