"""What `dev` and `demo` do before a person can begin: an administrator, the declarations in force.

Source: SPEC sections 15 (`datasource apply` is also run by `dev` and `demo`) and 17.
"""

from dataclasses import replace
from pathlib import Path

from datasource_governance.cli.actor import grant_signed
from datasource_governance.cli.datasource import apply_declarations
from datasource_governance.cli.key import register_public_key
from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.services.authority import found_tenant
from datasource_governance.signing import Signer, create_key, public_path

ADMINISTRATOR = "admin"


def found(database_url: str, dagster_url: str) -> Application:
    """Return an application over a system that was just started, with everything declared applied.

    The administrator's key is made in the key directory if it is not there. `system` may read, so
    that pipelines can load what is in force.
    """
    settings = replace(read_settings(), database_url=database_url, dagster_url=dagster_url)
    application = Application(settings)
    signer = signer_of(application, ADMINISTRATOR)
    found_tenant(application.work(), ADMINISTRATOR, signer.public_key)
    apply_declarations(application, signer)
    grant_signed(application, signer, SYSTEM, Role.STEWARD)
    return application


def signer_of(application: Application, actor: str) -> Signer:
    """Return an actor's signer; make the key if the actor has none here."""
    settings = application.settings
    if not key_file(application, actor).exists():
        create_key(settings.keys, actor)
    return Signer(settings.keys, actor, settings.tenant)


def key_file(application: Application, actor: str) -> Path:
    """Return where an actor's public key is."""
    return public_path(application.settings.keys, actor)


def admit(application: Application, actor: str, *roles: Role) -> Signer:
    """Make an actor known, with a key of its own and roles on all datasources."""
    administrator = signer_of(application, ADMINISTRATOR)
    signer = signer_of(application, actor)
    register_public_key(application, administrator, actor, key_file(application, actor))
    for role in roles:
        grant_signed(application, administrator, actor, role)
    return signer
