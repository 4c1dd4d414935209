"""Local accounts: names and argon2id hashes in a private file.

Source: SPEC section 16 (sign-in); RFC 9106.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from datasource_governance import private_files
from datasource_governance.domain.actor import ActorId, canonical_principal, person
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.policy_keys import Key, Record, read_document
from datasource_governance.domain.policy_values import ListOf, Text
from datasource_governance.errors import (
    InvalidArgumentError,
    InvalidPolicyError,
    ServiceUnavailableError,
)

if TYPE_CHECKING:
    from argon2 import PasswordHasher

FORMAT = "datasource_governance/accounts/v1"
MINIMUM_PASSWORD_CHARACTERS = 12
MAXIMUM_PASSWORD_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who signs in by which name, and as which actor."""

    name: str
    actor: ActorId
    password_hash: str = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Tells one password of the account from the next, without saying anything about it."""
        return hashlib.sha256(self.password_hash.encode()).hexdigest()[:32]


class Accounts:
    """The accounts of a file, read again whenever it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[object, Mapping[str, Account]] = (None, {})

    def find(self, name: str) -> Account | None:
        """Return an account by its name in any spelling.

        Raises:
            ServiceUnavailableError: when the file is not as it must be; nothing old is used then.
        """
        version = _version(self._path)
        if self._read[0] != version:
            self._read = (version, self._present())
        return self._read[1].get(canonical_name(name))

    def _present(self) -> Mapping[str, Account]:
        try:
            return read_accounts(self._path)
        except InvalidArgumentError as error:
            message = str(error)
        raise ServiceUnavailableError(message)

    def verify(self, name: str, password: str) -> Account | None:
        """Return the account whose password this is; the work is the same when there is none."""
        account = self.find(name)
        is_right = _is_right(account.password_hash if account else _nobodys_hash(), password)
        return account if account is not None and is_right else None


def canonical_name(name: str) -> str:
    """Return the one spelling of an account's name; empty when no account can have it."""
    try:
        return canonical_principal(name)
    except InvalidArgumentError:
        return ""


def make_account(name: str, actor: str, password: str) -> Account:
    """Return an account with a hash of its password.

    Raises:
        InvalidArgumentError: for a name or actor that cannot be one, or a password of fewer than 12
            characters or more than 1,024 bytes.
    """
    is_long_enough = len(password) >= MINIMUM_PASSWORD_CHARACTERS
    if not is_long_enough or len(password.encode()) > MAXIMUM_PASSWORD_BYTES:
        raise InvalidArgumentError(
            f"a password has at least {MINIMUM_PASSWORD_CHARACTERS} characters and at most "
            f"{MAXIMUM_PASSWORD_BYTES} bytes"
        )
    return Account(
        name=canonical_principal(name), actor=person(actor), password_hash=_hasher().hash(password)
    )


def read_accounts(path: Path) -> dict[str, Account]:
    """Return the accounts of a file by name; none when there is no file.

    Raises:
        InvalidArgumentError: when others may read the file, or it is not a list of accounts.
    """
    try:
        mode, document = path.stat().st_mode, path.read_bytes()
    except FileNotFoundError:
        return {}
    if mode & 0o077:
        raise InvalidArgumentError(f"{path} holds password hashes and must have mode 0600")
    try:
        accounts = read_document(_FILE, document, what="accounts")
    except InvalidPolicyError:
        accounts = None
    if accounts is None:  # what is wrong could quote a hash
        raise InvalidArgumentError(f"{path} is not a list of accounts of the format {FORMAT}")
    return {account.name: account for account in accounts}


def write_accounts(path: Path, accounts: Mapping[str, Account]) -> None:
    """Replace the file as a whole; it has mode 0600 from its first byte."""
    document = {
        "format": FORMAT,
        "accounts": [
            {"name": each.name, "actor": each.actor, "password_hash": each.password_hash}
            for each in accounts.values()
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_files.replace(path, canonical_bytes(document))


def _account(name: str, actor: str, password_hash: str) -> Account:
    return Account(name=canonical_principal(name), actor=person(actor), password_hash=password_hash)


_NAME = Text(expected="a name of 1-128 of a-z 0-9 . _ @ | : + -", pattern=r"[a-z0-9._@|:+-]{1,128}")
_FILE = Record(
    keys=(
        Key("format", Text(expected=FORMAT, pattern=FORMAT), required=True),
        Key(
            "accounts",
            ListOf(
                item=Record(
                    keys=(
                        Key("name", _NAME, required=True),
                        Key("actor", _NAME, required=True),
                        Key(
                            "password_hash",
                            Text(expected="an argon2id hash", pattern=r"\$argon2id\$[!-~]+"),
                            required=True,
                        ),
                    ),
                    build=_account,
                ),
                expected="a list of accounts",
                repeated="invalid_value",
                distinct_by="name",
            ),
            required=True,
        ),
    ),
    build=lambda accounts, **_: accounts,
)


def _version(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return "missing"
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


@cache
def _hasher() -> "PasswordHasher":
    from argon2 import PasswordHasher

    return PasswordHasher()


@cache
def _nobodys_hash() -> str:
    return _hasher().hash(os.urandom(32).hex())


def _is_right(password_hash: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return _hasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
