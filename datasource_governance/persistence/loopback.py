"""Ports of the loopback interface, the only one that our servers listen on."""

import socket

HOST = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket() as probe:
        # As servers bind: connections in TIME_WAIT of their former life do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def any_free_port() -> int:
    """Return a port that is free now; whoever binds it may still find it taken."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
