from datasource_governance_tests.domain.lifecycle import target


def test_settings_are_the_canonical_bytes_of_what_guards_read():
    assert target().settings() == b'{"promotion":"manual"}'
    assert target(promotion="automatic").settings() == b'{"promotion":"automatic"}'


def test_settings_do_not_move_with_what_is_current():
    assert target(current="m", revision=7).settings() == target().settings()
