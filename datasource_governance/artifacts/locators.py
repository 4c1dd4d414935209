"""Names of objects: made here, out of a datasource and a digest, and recognised by their form.

A locator is `<datasource>/<sha256>`, an unfinished upload `<datasource>/partial-<32 hex digits>`.
Neither form has room for a path, an address or a link, so nothing that a caller sends is joined to
a path before it is one of them.

Source: SPEC section 10; facts T-13.
"""

import re

from datasource_governance.domain.artifact import StoredArtifact, foreign
from datasource_governance.domain.canonical import Sha256
from datasource_governance.errors import InvalidArgumentError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_OBJECT = re.compile(r"[0-9a-f]{64}")
_PARTIAL = re.compile(r"partial-[0-9a-f]{32}")


def locator_of(datasource: str, sha256: Sha256) -> str:
    """Return the locator of the object that has this digest.

    Raises:
        InvalidArgumentError: when it is no id of a datasource.
    """
    return f"{checked_name('datasource', datasource)}/{sha256}"


def checked_name(what: str, name: str) -> str:
    """Return the id of a datasource or tenant if it is one.

    Raises:
        InvalidArgumentError: when it is none.
    """
    if not is_name(name):
        raise InvalidArgumentError(
            f"a {what} is named by a lower-case letter, then at most 62 lower-case letters, "
            "digits or underscores"
        )
    return name


def names_of(locator: str) -> tuple[str, str]:
    """Return the datasource and the object's own name, if a backend made the locator.

    Raises:
        GuardError: code `artifact_foreign`; the locator is not quoted.
    """
    datasource, _, name = locator.partition("/")
    if not _NAME.fullmatch(datasource) or not is_object_name(name):
        raise foreign("its locator was not made by this backend")
    return datasource, name


def check_reference(backend: str, datasource: str, artifact: StoredArtifact) -> None:
    """Refuse what does not name a whole object of this backend and datasource.

    Raises:
        GuardError: code `artifact_foreign`.
    """
    place, name = names_of(artifact.locator)
    if artifact.backend != backend:
        raise foreign("it names another backend")
    if place != datasource:
        raise foreign("it names another datasource's object")
    if name != artifact.sha256:
        raise foreign("its locator and its digest name different objects")


def is_object_name(name: str) -> bool:
    """Tell whether a name within a datasource is an artifact's or an unfinished upload's."""
    return bool(_OBJECT.fullmatch(name) or _PARTIAL.fullmatch(name))


def is_name(name: str) -> bool:
    """Tell whether a name can be that of a tenant or datasource."""
    return bool(_NAME.fullmatch(name))


def partial_name(token: str) -> str:
    """Return the name of an unfinished upload; the token is 32 hexadecimal digits."""
    return f"partial-{token}"


def checked_partial(checkpoint: str, datasource: str) -> str:
    """Return the name of the upload that a checkpoint of this package goes on with.

    Raises:
        InvalidArgumentError: when it is no such checkpoint, or another datasource's.
    """
    place, _, name = checkpoint.partition("/")
    if place != datasource or not _PARTIAL.fullmatch(name):
        raise InvalidArgumentError("the checkpoint is none of an upload to this datasource")
    return name
