"""What `dev` and `demo` do before a person can begin: the first actors, the declarations in force.

Source: SPEC sections 15 (`datasource apply` is also run by `dev` and `demo`) and 17.
"""

from contextlib import ExitStack
from pathlib import Path

from datasource_governance.cli.actor import grant_signed
from datasource_governance.cli.datasource import apply_declarations
from datasource_governance.cli.key import register_public_key
from datasource_governance.composition import Application, Settings
from datasource_governance.domain.actor import SYSTEM, Role
from datasource_governance.domain.attestation import KeyKind
from datasource_governance.errors import GuardError
from datasource_governance.services.authority import found_tenant
from datasource_governance.signing import Signer, create_key, public_path
from datasource_governance.web.gateway import GATEWAY, Gateway

ADMINISTRATOR = "admin"


def found(settings: Settings) -> Application:
    """Return an application over prepared databases, with everything declared applied.

    It is what must be there before the webserver starts: an administrator, whose key is made in the
    key directory if it is not there; the webserver's own key, registered to attest for others; an
    actor that signs checkpoints; and `system`, which may read and publish, so that pipelines can
    load what is in force and bring outputs in. What is there already stays as it is.

    Raises:
        GuardError: `tenant_exists` when somebody else administers the tenant, `key_taken` when the
            webserver's key was revoked.
        InvalidPolicyError: when a declaration is not as it must be.
    """
    application = Application(settings)
    with ExitStack() as failed:
        failed.callback(application.close)
        administrator = signer_of(application, ADMINISTRATOR)
        found_tenant(application.work(), ADMINISTRATOR, administrator.public_key)
        _register_gateway(application, administrator)
        admit(application, settings.checkpoint_actor, Role.VIEWER)
        apply_declarations(application, administrator)
        for role in (Role.STEWARD, Role.PRODUCER):
            grant_signed(application, administrator, SYSTEM, role)
        failed.pop_all()
    return application


def _register_gateway(application: Application, administrator: Signer) -> None:
    settings = application.settings
    file = Gateway(webserver_directory(settings), settings.tenant).public_key_file
    try:
        register_public_key(application, administrator, GATEWAY, file, KeyKind.GATEWAY)
    except GuardError as error:
        if error.code != "key_taken":
            raise
    else:
        return
    raise GuardError(
        f"the webserver's key was revoked; to have another one made, remove {GATEWAY}.pem and "
        f"{file.name} in {file.parent}",
        code="key_taken",
    )


def webserver_directory(settings: Settings) -> Path:
    """Return where the webserver keeps its accounts and keys, unless its settings say otherwise."""
    return settings.state / "webserver"


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
