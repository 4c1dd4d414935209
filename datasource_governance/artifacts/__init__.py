"""Where artifacts are kept: objects that are put once, and read only as what they were put as."""
