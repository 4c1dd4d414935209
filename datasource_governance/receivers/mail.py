"""A receiver that sends people one plain-text message for each event that concerns them.

Source: SPEC section 13; RFC 5322, RFC 3834 (automatic messages).
"""

import smtplib
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime
from enum import StrEnum

from datasource_governance.domain.event import Event
from datasource_governance.domain.notification import Notification, notification
from datasource_governance.errors import GovernanceError
from datasource_governance.receivers.subscription import TIMEOUT_SECONDS, refused, unavailable

_PERMANENT = 500
"""SMTP replies from here on are for good."""


class Security(StrEnum):
    """How a connection is encrypted: by a command at its beginning, or from its first byte."""

    STARTTLS = "starttls"
    TLS = "tls"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """Sends to all `recipients` at once; a server that takes it for one of them accepts it.

    Certificates are verified. `public_url` is where browsers reach the governed webserver.
    """

    host: str
    port: int
    security: Security
    sender: str
    recipients: tuple[str, ...]
    user: str | None
    password: str = field(repr=False)
    public_url: str

    def deliver(self, event: Event) -> None:
        """Send a message; an event that concerns nobody is accepted silently.

        Raises:
            ServiceUnavailableError: when the server cannot be reached or is not in the mood.
            GuardError: when it refuses sender, recipients or message for good.
        """
        told = notification(event, self.public_url)
        if told is None:
            return
        failure: GovernanceError | None = None
        try:
            with self._connected() as server:
                if self.user is not None:
                    server.login(self.user, self.password)
                server.send_message(self._message(event, told))
        except OSError as error:  # smtplib's errors are such, too
            failure = _failure(error)
        if failure is not None:
            raise failure

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self.security is Security.TLS:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_SECONDS, context=context)
        server = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_SECONDS)
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
        return server

    def _message(self, event: Event, told: Notification) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self.sender
        message["To"] = ", ".join(self.recipients)
        message["Subject"] = told.subject
        # Those of the event, so that a second copy is known for one.
        message["Date"] = format_datetime(event.created_at)
        message["Message-ID"] = f"<{event.id}@{self.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(f"{told.text}\n\n{told.link}\n")
        return message


def _failure(error: OSError) -> GovernanceError:
    """Return our own error; the server's words could quote the message."""
    codes: list[int] = []
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
    elif isinstance(error, smtplib.SMTPSenderRefused | smtplib.SMTPDataError):
        codes = [error.smtp_code]
    if codes and min(codes) >= _PERMANENT:
        return refused(f"the mail server answered {', '.join(map(str, sorted(set(codes))))}")
    return unavailable(f"{type(error).__name__} while mail was sent")
