"""Fuzz one target from a terminal, for as long as is asked."""

import argparse
import sys

from datasource_governance_tests.fuzzing.campaign import CORPUS, fuzz
from datasource_governance_tests.fuzzing.files import files
from datasource_governance_tests.fuzzing.policies import Policies


def main() -> int:
    """Return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m datasource_governance_tests.fuzzing")
    parser.add_argument("target", choices=("policies", "files"))
    parser.add_argument("--seconds", type=float, default=60, help="how long to breed inputs")
    parser.add_argument("--seed", type=int, default=0, help="another one breeds other inputs")
    given = parser.parse_args()
    folder, limits = CORPUS / given.target, {"seconds": given.seconds, "seed": given.seed}
    if given.target == "policies":
        report = fuzz(Policies(), folder, **limits)
    else:
        with files() as target:
            report = fuzz(target, folder, **limits)
    sys.stdout.write(f"{report}\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
