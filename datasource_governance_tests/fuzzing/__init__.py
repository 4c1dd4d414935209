"""Random damage to documents and files, and the promise that nothing but a refusal comes of it.

A *target* judges one input. Its corpus, kept here in `corpus/`, is replayed completely on every
run; then inputs are bred from it for as long as there is time. What breaks a promise is written to
`corpus/<target>/crashes/` and is replayed from then on. To run one for longer than the tests do:

    python -m datasource_governance_tests.fuzzing policies --seconds 600
"""
