"""The application and the signer that commands work with.

Source: SPEC sections 16 and 17.
"""

from contextlib import ExitStack

from datasource_governance.composition import Application, read_settings
from datasource_governance.domain.actor import UNATTESTED, ActorId
from datasource_governance.errors import InvalidArgumentError
from datasource_governance.signing import Signer

opened = ExitStack()
"""What the command that runs has opened; closed when it ends."""


def application() -> Application:
    """Return the application of this process's environment; nothing is connected yet."""
    made = Application(read_settings())
    opened.callback(made.close)
    return made


def signer(app: Application, actor: str | None) -> Signer:
    """Return the signer of an actor.

    Raises:
        InvalidArgumentError: when no actor is named, or the actor has no key here.
    """
    name = actor or app.settings.actor
    if name is None:
        raise InvalidArgumentError(
            "say who does this: --actor NAME, or export GOVERNANCE_ACTOR; "
            "its key is made by: key create NAME"
        )
    return Signer(app.settings.keys, name, app.settings.tenant)


def proven(app: Application, actor: str | None) -> ActorId:
    """Return the actor whose registered key is here, or nobody in particular."""
    name = actor or app.settings.actor
    try:
        reader = Signer(app.settings.keys, name, app.settings.tenant) if name else None
    except InvalidArgumentError:
        reader = None
    if reader is None:
        return UNATTESTED
    with app.work() as work:
        key = work.authority.key(reader.key)
    is_owner = key is not None and key.actor == reader.actor and key.revoked_at is None
    return reader.actor if is_owner else UNATTESTED
