"""`python -m benchmarks.worker ENGINE VARIANT ROWS RULES`: print one measurement as JSON."""

import dataclasses
import sys

from benchmarks.datasets import Scenario
from benchmarks.measurement import measure
from datasource_governance.domain.canonical import canonical_bytes

if __name__ == "__main__":
    engine, variant, rows, rules = sys.argv[1:]
    measured = measure(engine, Scenario(int(rows), variant, int(rules)))
    sys.stdout.write(canonical_bytes(dataclasses.asdict(measured)).decode())
