"""A receiver that takes events by HTTP, signed as Standard Webhooks says.

Source: SPEC section 13; the Standard Webhooks specification, "Signature scheme".
"""

import base64
import hashlib
import hmac
import time
from dataclasses import dataclass, field
from http import HTTPStatus

import requests
from requests.auth import AuthBase
from typing_extensions import override

from datasource_governance.domain.canonical import canonical_bytes
from datasource_governance.domain.event import Event
from datasource_governance.domain.notification import document
from datasource_governance.errors import GovernanceError
from datasource_governance.receivers.subscription import TIMEOUT_SECONDS, refused, unavailable

_LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Posts the event's canonical JSON, with what people are told beside it; 2xx accepts it.

    `public_url` is where browsers reach the governed webserver. Redirects are not followed and
    answers are not read.
    """

    url: str = field(repr=False)
    secret: bytes = field(repr=False)
    public_url: str

    def deliver(self, event: Event) -> None:
        """Post an event.

        Raises:
            ServiceUnavailableError: when the address cannot be reached or answers 408, 429 or 5xx.
            GuardError: when it answers anything else.
        """
        body = canonical_bytes(document(event, self.public_url))
        status, failure = 0, None
        try:
            with requests.post(
                self.url,
                data=body,
                headers=self._headers(event, body),
                auth=_NoCredentials(),
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as answer:
                status = answer.status_code
        except requests.RequestException as error:
            failure = unavailable(f"{type(error).__name__} while it was posted to")
        if problem := failure or _refusal(status):
            raise problem

    def _headers(self, event: Event, body: bytes) -> dict[str, str]:
        # The clock of this machine: it says how old the request is, not the event.
        at = str(int(time.time()))
        signed = b".".join((event.id.encode(), at.encode(), body))
        signature = base64.b64encode(hmac.digest(self.secret, signed, hashlib.sha256)).decode()
        return {
            "content-type": "application/json",
            "user-agent": "datasource-governance",
            "webhook-id": event.id,
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{signature}",
        }


class _NoCredentials(AuthBase):
    """Keeps requests from looking for credentials of the address in a `.netrc`."""

    @override
    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        return request


def _refusal(status: int) -> GovernanceError | None:
    if status // 100 == HTTPStatus.OK // 100:
        return None
    why = f"it answered with status {status}"
    is_away = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _LATER
    return unavailable(why) if is_away else refused(why)
