"""Local accounts with which `dev` and `demo` are tried out: the people of the packaged story.

They are made once. Whoever removes one, gives it a password of its own or takes its roles away is
not overruled by the next start.

Source: SPEC section 16 (`dev`); issue "Approval that nobody can fake, where people work".
"""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from rich.console import Console
from rich.table import Table

from datasource_governance import private_files
from datasource_governance.cli.founding import ADMINISTRATOR, admit, key_file, webserver_directory
from datasource_governance.composition import Application
from datasource_governance.domain.actor import Role, person
from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.policy_keys import Key, Record, read_document
from datasource_governance.domain.policy_values import ListOf, Text
from datasource_governance.errors import InvalidArgumentError, InvalidPolicyError
from datasource_governance.web.accounts import Account, make_account, read_accounts, write_accounts
from datasource_governance.web.settings import WebSettings

FORMAT = "datasource_governance/demo_accounts/v1"
PEOPLE: Mapping[str, tuple[Role, ...]] = MappingProxyType(
    {
        ADMINISTRATOR: (Role.ADMINISTRATOR, Role.OPERATOR),
        "casey": (Role.STEWARD, Role.APPROVER),
        "alice": (Role.APPROVER,),
        "bob": (Role.APPROVER,),
        "pat": (Role.PRODUCER, Role.VIEWER),
        "vera": (Role.VIEWER,),
    }
)
"""Who tries what, with roles on all datasources: account and actor have the same name."""
_PASSWORD_BYTES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAccount:
    """An account as it was made. `fingerprint` tells whether its password is still this one."""

    name: str
    password: str = field(repr=False)
    fingerprint: str


def demo_accounts(application: Application) -> tuple[DemoAccount, ...]:
    """Return the demo accounts that are still as they were made; make them on the first start.

    Names that others have already, as an account or as an actor with a key from elsewhere, are left
    to them. The passwords are random, and kept beside the accounts, with mode 0600.

    Raises:
        InvalidArgumentError: when the accounts, or the file of demo accounts, cannot be read.
    """
    path = demo_accounts_file(application)
    accounts_file = WebSettings(directory=path.parent).accounts_file
    if not path.exists():
        _make(application, path, accounts_file)
    present = read_accounts(accounts_file)
    return tuple(one for one in _read(path) if _is_as_made(one, present))


def demo_accounts_file(application: Application) -> Path:
    """Return where the demo accounts and their passwords are kept."""
    return webserver_directory(application.settings) / "demo_accounts.json"


def tell_accounts(out: Console, url: str, accounts: Collection[DemoAccount]) -> None:
    """Tell the person who started a system where to sign in, and with what."""
    out.print(f"Dagster UI: {url}", markup=False)
    if not accounts:
        return
    table = Table("account", "password", "roles", title="sign in with", title_justify="left")
    for one in accounts:
        table.add_row(one.name, one.password, ", ".join(PEOPLE.get(one.name, ())))
    out.print(table)
    out.print("For trying out; end one with: datasource-governance webserver account NAME --remove")


def _make(application: Application, path: Path, accounts_file: Path) -> None:
    present = read_accounts(accounts_file)
    names = [name for name in PEOPLE if name not in present and _is_free(application, name)]
    passwords = {name: secrets.token_urlsafe(_PASSWORD_BYTES) for name in names}
    made = {name: make_account(name, name, password) for name, password in passwords.items()}
    for name in names:
        admit(application, name, *PEOPLE[name])
    document = {
        "format": FORMAT,
        "accounts": [
            {"name": name, "password": passwords[name], "fingerprint": made[name].fingerprint}
            for name in names
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_files.replace(path, canonical_bytes(document))
    write_accounts(accounts_file, {**present, **made})


def _read(path: Path) -> tuple[DemoAccount, ...]:
    try:
        return read_document(_FILE, path.read_bytes(), what="demo accounts")
    except InvalidPolicyError:
        pass  # what is wrong could quote a password
    raise InvalidArgumentError(
        f"{path} is not a list of demo accounts; without it they are made anew"
    )


def _is_free(application: Application, name: str) -> bool:
    """Tell whether nobody has a name, or only with a key that was made here."""
    with application.work() as work:
        is_known = work.authority.actor(person(name)) is not None
    return not is_known or key_file(application, name).exists()


def _is_as_made(one: DemoAccount, present: Mapping[str, Account]) -> bool:
    return one.name in present and present[one.name].fingerprint == one.fingerprint


_FILE = Record(
    keys=(
        Key("format", Text(expected=FORMAT, pattern=FORMAT), required=True),
        Key(
            "accounts",
            ListOf(
                item=Record(
                    keys=tuple(
                        Key(name, Text(expected="a printable text"), required=True)
                        for name in ("name", "password", "fingerprint")
                    ),
                    build=DemoAccount,
                ),
                expected="a list of accounts",
            ),
            required=True,
        ),
    ),
    build=lambda accounts, **_: accounts,
)
