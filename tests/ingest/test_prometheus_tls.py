"""Pulls over https: who the server must be, what is sent to it, and that no credential is ever told."""

from __future__ import annotations

import ipaddress
import json
import logging
import random
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drivetail.cli import main
from ingest import IngestError
from ingest.sources.prometheus import client as client_module
from ingest.sources.prometheus.client import CA, CERTIFICATE, KEY, PASSWORD, TENANT, TOKEN, USER, Client, PrometheusError
from tests.ingest.conftest import Warehouse
from tests.ingest.prometheus_server import Fault, Server, serving
from tests.ingest.test_prometheus_pull import START, drive, every, land

SENT = "s3cret-of-nobody"
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RETRIES", 2)
    monkeypatch.setattr(client_module, "BACKOFF_SECONDS", 0.0)
    for name in (USER, PASSWORD, TOKEN, TENANT, CA, CERTIFICATE, KEY, "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


class Authority:
    """An authority of the tests' own, and what it signs: files NAME.pem and NAME.key in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.file = self._write("ca", self.key, self.name, is_authority=True, since=-2, until=2)

    def sign(self, name: str, since: int = -1, until: int = 1, host: str = "localhost") -> Path:
        """A certificate for a host, valid from `since` to `until` days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        return self._write(name, key, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), since=since, until=until, host=host)

    def _write(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        subject: x509.Name,
        *,
        since: int,
        until: int,
        host: str = "",
        is_authority: bool = False,
    ) -> Path:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder(self.name, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now + since * DAY)
            .not_valid_after(now + until * DAY)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if host:
            names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        usage = x509.KeyUsage(True, False, False, False, False, is_authority, is_authority, False, False)
        certificate = made.add_extension(usage, critical=True).sign(self.key, hashes.SHA256())
        path = self.folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        path.with_suffix(".key").write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        )
        return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "ours")


@contextmanager
def https(certificate: Path, *, clients_of: Path | None = None, fault: Fault = lambda *_: None) -> Iterator[Server]:
    """A server that shows this certificate and, where asked to, takes only clients that an authority has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    if clients_of:
        context.load_verify_locations(clients_of)
        context.verify_mode = ssl.CERT_REQUIRED
    with serving(Server(drive("web", "sda", every(60), random.Random(1), "S0"), fault), context) as server:
        yield server


def test_a_server_of_an_authority_of_our_own_is_believed_where_it_is_named(
    authority: Authority, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with https(authority.sign("server")) as server:
        with pytest.raises(PrometheusError, match=rf"certificate verify failed.*{CA}"):
            land(server, warehouse)
        assert server.asked == []
        monkeypatch.setenv(CA, str(authority.file))
        # the machine's settings for other servers do not take its place
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(Authority(authority.folder / "other").file))
        assert land(server, warehouse).rows_accepted == 3


@pytest.mark.parametrize(
    ("signed", "said"),
    [({"until": 0}, "expired"), ({"since": 1, "until": 2}, "not yet valid"), ({"host": "prometheus.example"}, "localhost")],
)
def test_a_certificate_that_is_none_of_the_servers_is_refused(
    signed: dict[str, int], said: str, authority: Authority, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA, str(authority.file))
    monkeypatch.setenv(TOKEN, SENT)
    monkeypatch.setattr(client_module, "BACKOFF_SECONDS", 60.0)  # it is not asked again: it would be refused again
    with https(authority.sign("wrong", **signed)) as server, pytest.raises(PrometheusError, match=said) as refused:
        land(server, warehouse)
    assert server.headers == [] and CA in str(refused.value)


def test_a_client_certificate_is_shown_to_a_server_that_asks_for_one(
    authority: Authority, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CA, str(authority.file))
    with https(authority.sign("server"), clients_of=authority.file) as server:
        with pytest.raises(PrometheusError, match=CERTIFICATE):
            land(server, warehouse)
        client = authority.sign("client")
        monkeypatch.setenv(CERTIFICATE, str(client))
        monkeypatch.setenv(KEY, str(client.with_suffix(".key")))
        assert land(server, warehouse).rows_accepted == 3


@pytest.mark.parametrize("name", [CA, CERTIFICATE, KEY])
def test_a_file_that_is_missing_or_no_pem_is_named(
    name: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = authority.sign("client")
    given = {CA: authority.file, CERTIFICATE: client, KEY: client.with_suffix(".key")}
    for variable, path in given.items():
        monkeypatch.setenv(variable, str(path))
    monkeypatch.setenv(name, str(tmp_path / "gone.pem"))
    with pytest.raises(PrometheusError, match=rf"{name} is .*gone.pem: no such file"):
        Client("https://localhost:1")
    (tmp_path / "gone.pem").write_text("not PEM\n")
    with https(authority.sign("server")) as server, pytest.raises(PrometheusError, match=name):
        Client(server.url).ask("query")


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({TOKEN: SENT, TENANT: "team-a"}, f"Bearer {SENT}"),
        ({USER: "ada", PASSWORD: "pw"}, "Basic YWRhOnB3"),
        ({USER: "ada", PASSWORD: "p€"}, "Basic YWRhOnDigqw="),  # UTF-8, as Prometheus reads it
        ({}, None),
    ],
)
def test_credentials_are_sent_over_tls(
    given: dict[str, str], sent: str | None, authority: Authority, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {CA: str(authority.file), **given}.items():
        monkeypatch.setenv(name, value)
    with https(authority.sign("server")) as server:
        assert land(server, warehouse).rows_accepted == 3
        assert {(headers.get("Authorization"), headers.get("X-Scope-OrgID")) for headers in server.headers} == {(sent, given.get(TENANT))}


NO_SERIES = {"resultType": "matrix", "result": []}
ANSWERS: dict[str, tuple[int, dict[str, str], object] | None] = {
    "a proxy's echo": (400, {}, f"<pre>Authorization: Bearer {SENT} Basic YWRhOnMzY3JldC1vZi1ub2JvZHk= {SENT}"),
    "an error": (400, {}, {"status": "error", "errorType": "bad_data", "error": f"{'x' * 270} unknown token {SENT}"}),
    "a warning": (200, {}, {"status": "success", "data": NO_SERIES, "warnings": [f"store refused {SENT}"]}),
    "no matrix": (200, {}, {"status": "success", "data": {**NO_SERIES, "resultType": f"asked by {SENT}"}}),
    "elsewhere": (302, {"Location": f"http://127.0.0.1:1/?token={SENT}"}, ""),
    "unauthorised": (401, {}, ""),
    "series": None,
}


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("given", [{TOKEN: SENT}, {USER: "ada", PASSWORD: SENT}, {TOKEN: f"{SENT}\n"}])
def test_no_credential_is_shown_whatever_happens(
    given: dict[str, str],
    case: str,
    authority: Authority,
    warehouse: Warehouse,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in {CA: str(authority.file), **given}.items():
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.DEBUG)
    arguments = ["--from", f"{START:%Y-%m-%dT%H}", "--to", f"{START + timedelta(hours=1):%Y-%m-%dT%H}", "--allow-partial"]
    answer = ANSWERS[case]
    sent = answer and (*answer[:2], (answer[2] if isinstance(answer[2], str) else json.dumps(answer[2])).encode())
    with https(authority.sign("server"), fault=lambda *_: sent) as server:
        done = CliRunner().invoke(main, ["ingest", "prometheus", server.url, *arguments, "--warehouse", str(warehouse.path)])
        doctor = CliRunner().invoke(main, ["doctor", "prometheus", server.url])
    kept = b"".join(path.read_bytes() for path in warehouse.path.rglob("*") if path.is_file())
    told = f"{done.output}{done.exception!r}{doctor.output}{doctor.exception!r}{caplog.text}{kept!r}"
    assert server.url in told and "does not take" not in told
    # a part of it, or how basic authentication writes it, tells as much
    assert not [part for part in (SENT[:6], *(["YWRhOnMzY3JldC"] if USER in given else [])) if part in told]


def test_a_token_that_no_header_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for token in (f"{SENT}\n", "t€ken"):
        monkeypatch.setenv(TOKEN, token)
        with pytest.raises(IngestError, match=f"{TOKEN} holds a character"):
            Client("https://localhost:1")


def test_credentials_do_not_follow_to_another_server(authority: Authority, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CA, str(authority.file))
    monkeypatch.setenv(TOKEN, SENT)
    with serving(Server({})) as other:
        there = f"{other.url}/api/v1/query_range"
        with (
            https(authority.sign("server"), fault=lambda *_: (307, {"Location": there}, b"")) as server,
            pytest.raises(IngestError, match="redirects to another address"),
        ):
            land(server, warehouse)
        assert other.asked == []
