from datasource_governance_tests.domain.lifecycle import target


def test_settings_are_the_canonical_bytes_of_what_guards_read():
    rest = b'{"allow_supplied_policy":false,"artifact_evaluation":"evidence","promotion":'
    assert target().settings() == rest + b'"manual"}'
    assert target(promotion="automatic").settings() == rest + b'"automatic"}'


def test_a_move_makes_another_materialization_current_as_the_next_revision():
    moved = target(revision=7).moved_to("m")

    assert (moved.current, moved.revision) == ("m", 8)


def test_settings_do_not_move_with_what_is_current():
    assert target(current="m", revision=7).settings() == target().settings()
