"""What must be there before the webserver starts: made once, and left as it is from then on."""

from dataclasses import replace

import pytest

from datasource_governance.cli.founding import found, webserver_directory
from datasource_governance.composition import CHECKPOINT_ACTOR, read_settings
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.errors import GuardError
from datasource_governance.services.checkpointing import write_checkpoint
from datasource_governance.web.gateway import GATEWAY

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def settings(world):
    """The settings of a world over the packaged declarations."""
    return replace(world.application.settings, datasources=read_settings({}).datasources)


def keys_of(application, name):
    with application.work() as work:
        return list(work.authority.keys(name))


def test_the_webservers_key_may_attest_for_others(settings):
    application = found(settings)

    (key,) = keys_of(application, GATEWAY)
    application.close()
    assert (key.kind, key.revoked_at) == (KeyKind.GATEWAY, None)


def test_the_next_start_changes_nothing(settings, world):
    found(settings).close()
    before = world.count_rows()

    found(settings).close()

    assert world.count_rows() == before


def test_what_signs_checkpoints_can(settings, world, tmp_path):
    application = found(settings)

    signer = world.signer(CHECKPOINT_ACTOR)
    place = application.checkpoint_files(str(tmp_path / "kept"))
    write_checkpoint(application.work(), signer, place)
    application.close()

    assert len(list(place.read())) == 1


def test_a_revoked_webservers_key_is_said_with_what_helps(settings, world):
    application = found(settings)
    (key,) = keys_of(application, GATEWAY)
    application.close()
    world.revoke(key.id)

    with pytest.raises(GuardError) as refused:
        found(settings)
    for file in webserver_directory(settings).glob("gateway*"):
        assert str(file.parent) in str(refused.value)
        assert file.name in str(refused.value)
        file.unlink()
    again = found(settings)

    assert refused.value.code == "key_taken"
    assert refused.value.__context__ is None
    assert len(keys_of(again, GATEWAY)) == 2
    again.close()
