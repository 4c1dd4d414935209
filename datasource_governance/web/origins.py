"""Whether a request that changes something was made by a page of ours. Pure.

Browsers say where a request comes from in `Sec-Fetch-Site` and `Origin`, which pages cannot forge.

Source: SPEC section 16 (CSRF guard); Fetch standard; W3C Fetch Metadata.
"""

from collections.abc import Collection

from datasource_governance.web.headers import Headers, single_header


def is_from(headers: Headers, origins: Collection[str], *, bearer: bool) -> bool:
    """Tell whether a request comes from one of `origins`.

    Where both headers are missing it was no browser, which is let through only with a `bearer`
    token: nothing adds one by itself as browsers add cookies. A header that is given twice counts
    as foreign.
    """
    given = {key.lower() for key, _ in headers}
    if b"sec-fetch-site" in given and single_header(headers, "sec-fetch-site") != "same-origin":
        return False
    if b"origin" in given:
        return single_header(headers, "origin") in origins
    return bearer or b"sec-fetch-site" in given
