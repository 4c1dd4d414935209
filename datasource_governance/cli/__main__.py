"""`python -m datasource_governance.cli`: the command line where no script is installed."""

from datasource_governance.cli import main

main()
