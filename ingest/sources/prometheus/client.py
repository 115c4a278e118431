"""The HTTP API of a Prometheus-compatible server: questions in, series out; patient with a busy server, not with a lying one."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from ingest.contract.errors import ServerError
from ingest.contract.values import plain_address
from ingest.reading.limits import memory_limit, memory_limit_bytes
from ingest.reading.text import in_sight, one_line, utf8

USER, PASSWORD, TOKEN = (f"DRIVETAIL_PROMETHEUS_{name}" for name in ("USER", "PASSWORD", "TOKEN"))
TENANT, CA, CERTIFICATE, KEY = (f"DRIVETAIL_PROMETHEUS_{name}" for name in ("TENANT", "CA", "CERTIFICATE", "KEY"))
# A busy or restarting server is asked again, 1, 2, 4, 8 and 16 seconds later, or when it says.
RETRIES = 5
BACKOFF_SECONDS = 1.0
RETRIED = (408, 425, 429, 500, 502, 504, 503)
CONNECT_SECONDS = 10
IMPATIENT_CONNECT_SECONDS = 4
SILENCE_SECONDS = 120
# A whole answer, with all that is asked again and however it trickles in; Prometheus itself gives up on a query after two minutes.
ANSWER_SECONDS = 300.0
LONGEST_WAIT_SECONDS = 60  # in any server's challenge
# Part of the memory that the process may take: an answer takes eight times its bytes while it is read.
ANSWERS_IN_MEMORY = 16


# Prometheus, Mimir, Thanos and VictoriaMetrics each have their own words for it.
_SAYS_TOO_MUCH = re.compile("too many|exceed|time(d )?out|cannot select more than")


class PrometheusError(ServerError):
    """An error of a Prometheus server. The message says what to do, and never a credential."""

    def __init__(self, message: str) -> None:
        # a server writes no line of its own into a log
        super().__init__(in_sight(without_secrets(message)))


class TooMuch(PrometheusError):
    """The answer is more than the server or this process will hold; request less at a time."""


@dataclass
class Series:
    """One series of an answer: its labels, and (unix seconds, value as text) in order of time."""

    labels: dict[str, str]
    points: list[tuple[float, str]]


@dataclass
class Client:
    """`url`: the server as a browser opens it, with a path prefix where it has one. Credentials come from the environment.

    `is_partial_allowed`: take answers that the server calls incomplete; its warnings about them are then in `warnings`.
    `is_patient`: try again for half a minute where nobody listens, as a pull does.
    """

    url: str
    is_partial_allowed: bool = False
    is_patient: bool = True
    warnings: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.url = server_url(self.url)
        self.session = requests.Session()
        retry = Retry(  # other: a certificate that is refused stays refused
            total=RETRIES, connect=None if self.is_patient else 0, other=0, backoff_factor=BACKOFF_SECONDS,
            backoff_max=60, status_forcelist=RETRIED, raise_on_status=False,
            respect_retry_after_header=True, retry_after_max=LONGEST_WAIT_SECONDS, allowed_methods=("GET",),
        )  # fmt: skip
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, HTTPAdapter(max_retries=retry))
        self.session.auth = _authentication()  # set even without credentials, or requests would take those of ~/.netrc
        self.session.headers["User-Agent"] = "drivetail"
        if tenant := os.environ.get(TENANT):
            self.session.headers["X-Scope-OrgID"] = tenant
        self._authority, certificate = _pem_files()
        self.session.cert = certificate

    @property
    def has_credentials(self) -> bool:
        """Whether a user or a token is sent along."""
        return bool(os.environ.get(TOKEN) or os.environ.get(USER))

    def query_range(self, query: str, start: int, end: int, step: int) -> list[Series]:
        """A query evaluated every `step` seconds from `start` to `end` (unix seconds, both included)."""
        data = self.ask("query_range", {"query": query, "start": start, "end": end, "step": step})
        return list(_series(data, (start, end), step))

    def query(self, query: str, at: int, seconds: int) -> list[Series]:
        """A range selector at one instant: every stored sample of the `seconds` before `at`."""
        return list(_series(self.ask("query", {"query": query, "time": at}), (at - seconds, at), None))

    def ask(self, endpoint: str, parameters: Mapping[str, str | int] | None = None) -> Any:
        """`data` of an answer of /api/v1/<endpoint>. Raises: TooMuch, PrometheusError."""
        answer: Future[Any] = Future()
        has_begun = Event()

        def wait() -> None:
            try:
                answer.set_result(self._ask(endpoint, parameters, has_begun))
            except BaseException as error:
                answer.set_exception(error)

        # a socket's own timeout restarts with every byte: a server that sends one a minute is left behind with the thread that reads it
        Thread(target=wait, daemon=True).start()
        try:
            return answer.result(ANSWER_SECONDS)
        except TimeoutError:
            said = f"{self.url} took more than {ANSWER_SECONDS:.0f} s for one answer"
            if has_begun.is_set():
                raise TooMuch(f"{said}; select less with --match") from None
            raise PrometheusError(f"{said}, and sent none; try later: what was pulled so far is kept") from None

    def _ask(self, endpoint: str, parameters: Mapping[str, str | int] | None, has_begun: Event) -> Any:
        shown = f"{self.url}/api/v1/{endpoint}"
        try:
            with self.session.get(
                shown,
                params=parameters,
                timeout=(CONNECT_SECONDS if self.is_patient else IMPATIENT_CONNECT_SECONDS, SILENCE_SECONDS),
                stream=True,
                verify=self._authority,  # with every question: else REQUESTS_CA_BUNDLE would count before the session's own
                allow_redirects=False,
            ) as response:
                has_begun.set()
                body = self._body(response)
                status, reason = response.status_code, response.reason
        except requests.exceptions.SSLError as error:
            raise PrometheusError(
                f"{self.url}: {_cause(error)}; if its certificate is your own, set {CA} to the authority's file; "
                f"if it asks for yours, set {CERTIFICATE} and {KEY}"
            ) from error
        except requests.RequestException as error:
            raise PrometheusError(
                f"{self.url} cannot be reached: {_cause(error)}; is the address right, and is the server up?"
                + (" What was pulled so far is kept: run the same command again" if self.is_patient else "")
            ) from error
        if status in (401, 403):
            raise PrometheusError(
                f"{self.url} answers {status} {reason}; set {TOKEN}, or {USER} and {PASSWORD}, to credentials that may query it"
            )
        if 300 <= status < 400:
            raise PrometheusError(
                f"{self.url} answers {status} {reason} and redirects to another address, where credentials are not sent; "
                f"`curl -I {shown}` shows which. If it is the server's own, give that one; if it is a login page, set {TOKEN}"
            )
        return self._data(body, status, shown)

    def _body(self, response: requests.Response) -> bytes:
        limit = memory_limit_bytes() // ANSWERS_IN_MEMORY
        blocks, held = [], 0
        for block in response.iter_content(1 << 18):
            held += len(block)
            if held > limit:
                raise TooMuch(
                    f"{self.url} answers with more than {limit >> 20} MiB, unpacked; select less with --match, or allow more memory "
                    f"(DRIVETAIL_MEMORY_LIMIT is {memory_limit()})"
                )
            blocks.append(block)
        return b"".join(blocks)

    def _data(self, body: bytes, status: int, shown: str) -> Any:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            starts = without_secrets(body[:10_000].decode("utf-8", "replace"))[:60]
            raise PrometheusError(
                f"{shown}: {status}, and no whole JSON answer ({one_line(error)}; it starts with {starts!r}); "
                "is this a Prometheus-compatible server?"
            ) from error
        if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
            raise PrometheusError(f"{shown}: {status}, and no answer of Prometheus' HTTP API; is the address right, path prefix included?")
        if answer["status"] == "error":
            said = without_secrets(f"{answer.get('errorType', 'error')}: {answer.get('error', '')}")[:300]
            if status != 429 and _SAYS_TOO_MUCH.search(said):  # 429: too many requests, and more of them do not help
                raise TooMuch(f"{shown}: {said}; select less with --match")
            raise PrometheusError(f"{shown}: {status}: {said}")
        # what Prometheus has to say on the question itself is no sign of missing data
        warnings = answer.get("warnings")
        partial = [text for text in (warnings if isinstance(warnings, list) else []) if not str(text).startswith("PromQL")]
        if partial:
            self.warnings.update(without_secrets(str(text)) for text in partial)
            if not self.is_partial_allowed:
                raise PrometheusError(
                    f"{shown}: the server calls its answer incomplete: {partial[0]}; try later, or accept it with --allow-partial"
                )
        if "data" not in answer:
            raise PrometheusError(f"{shown}: an answer without data; is this a Prometheus-compatible server?")
        return answer["data"]


def _pem_files() -> tuple[str | None, str | tuple[str, str] | None]:
    """The authority, and the client certificate with its key, that the environment names. Raises: PrometheusError where one is none."""
    authority, certificate, key = given = [os.environ.get(name) or None for name in (CA, CERTIFICATE, KEY)]
    for name, path in zip((CA, CERTIFICATE, KEY), given, strict=True):
        if path and not Path(path).exists():
            raise PrometheusError(f"{name} is {path}: no such file; give the path of a PEM file")
    context, name = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), CA
    try:
        if authority:
            is_folder = Path(authority).is_dir()
            context.load_verify_locations(None if is_folder else authority, authority if is_folder else None)
        name = f"{CERTIFICATE} (with {KEY})"
        if certificate:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        raise PrometheusError(f"{name} cannot be used: {one_line(error)}; give PEM files, the key without a passphrase") from error
    return authority, (certificate, key) if certificate and key else certificate


def server_url(given: str) -> str:
    """A server's address as it is asked and kept: without trailing slash. Raises: PrometheusError for no address or a password."""
    try:
        parts = urlsplit(given)
        port_is_number = parts.port is None or parts.port > 0
    except ValueError:
        port_is_number = False
    if not port_is_number or parts.scheme not in ("http", "https") or not parts.hostname:
        raise PrometheusError(f"{plain_address(given)}: not the address of a server; give one like http://prometheus:9090")
    if parts.username or parts.password:
        raise PrometheusError(
            f"the address of {parts.hostname} holds credentials, which would be kept with the data; set {USER} and {PASSWORD}"
        )
    if parts.query or parts.fragment:
        given = plain_address(given)
        raise PrometheusError(
            f"{given}: give the server's address only, like http://prometheus:9090; --from, --to and --match say what to pull"
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/api/v1"), "", ""))


def _authentication() -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
    token, user = os.environ.get(TOKEN), os.environ.get(USER)
    if token and user:
        raise PrometheusError(f"both {TOKEN} and {USER} are set; set one of them")
    if token and not (token.isascii() and token.isprintable()):
        raise PrometheusError(f"{TOKEN} holds a character that is not allowed in a header, such as a line break")
    header = f"Basic {_basic(user)}" if user else f"Bearer {token}" if token else None

    def authenticated(request: requests.PreparedRequest) -> requests.PreparedRequest:
        if header:
            request.headers["Authorization"] = header
        return request

    return authenticated


def _basic(user: str) -> str:
    return base64.b64encode(f"{user}:{os.environ.get(PASSWORD, '')}".encode()).decode()


def without_secrets(text: str) -> str:
    """A text that may hold what a server, a proxy or a library said: without the credentials of the environment."""
    user = os.environ.get(USER)
    for secret in (os.environ.get(TOKEN), os.environ.get(PASSWORD), _basic(user) if user else None):
        if secret:
            text = text.replace(secret, "***")
    return text


def _cause(error: BaseException) -> str:
    """The innermost reason: requests wraps urllib3, which wraps what the machine said."""
    seen = 0
    while (
        seen < 10
        and (inner := getattr(error, "reason", None) or (error.args[0] if error.args else None))
        and isinstance(inner, BaseException)
    ):
        error, seen = inner, seen + 1
    return one_line(error)


def _series(data: Any, limits: tuple[int, int], step: int | None) -> Iterator[Series]:
    """The series of a matrix; points outside what was asked, out of order or malformed mean that the server is wrong."""
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise PrometheusError(f"expected a matrix of series, the server answered with {str(data)[:80]!r}")
    for one in data["result"]:
        try:
            labels = {utf8(str(name)): utf8(str(value)) for name, value in one["metric"].items()}
            points = [(float(at), value) for at, value in one.get("values", ())]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise PrometheusError(f"a series of no known shape: {str(one)[:80]!r} ({one_line(error)})") from error
        previous = -1.0
        for at, value in points:
            if not limits[0] <= at <= limits[1] or at <= previous or not isinstance(value, str) or not value.isascii():
                raise PrometheusError(
                    f"{labels.get('__name__', 'a series')} has ({at}, {value!r}), outside or out of order in the requested range {limits}"
                )
            if step and (at - limits[0]) % step:
                raise PrometheusError(f"{labels.get('__name__', 'a series')} has a point at {at}, which is not one of the steps requested")
            previous = at
        yield Series(labels, points)
