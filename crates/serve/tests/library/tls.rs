//! Encrypted connections: what is served, and who is refused before a request is read.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber, date_time_ymd,
};
use tfrt_serve::{Limits, Server, TlsFiles, VersionPolicy};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedCipherSuite, version,
};

use crate::support::{Folder, PATIENCE, Times, builder, repository};

/// An authority, made up for a test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
struct Card {
    cert: String,
    key: String,
}

fn key() -> KeyPair {
    KeyPair::generate().expect("there are random numbers")
}

fn params(usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.extended_key_usages = vec![usage];
    params
}

fn client() -> CertificateParams {
    params(ExtendedKeyUsagePurpose::ClientAuth)
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Authority(CertifiedIssuer::self_signed(params, key()).expect("it is well formed"))
    }

    fn pem(&self) -> String {
        self.0.as_ref().pem()
    }

    fn card(&self, params: &CertificateParams) -> Card {
        let key = key();
        let cert = params.signed_by(&key, &self.0).unwrap().pem();
        Card {
            cert,
            key: key.serialize_pem(),
        }
    }

    /// Signs a list that revokes the certificate of a number.
    fn revoked(&self, number: u64) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(number),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

/// A server with its authority.
struct Encrypted {
    server: Server,
    authority: Authority,
    _folder: Folder,
}

/// Starts a server that encrypts; with `asks`, one that asks clients for certificates.
fn encrypted(name: &str, asks: bool) -> Encrypted {
    let (folder, authority) = (Folder::new(name), Authority::new("own"));
    let own = authority.card(&params(ExtendedKeyUsagePurpose::ServerAuth));
    folder.write("ca.pem", &authority.pem());
    folder.write("cert.pem", &own.cert);
    folder.write("key.pem", &own.key);
    folder.write("revoked.pem", &authority.revoked(77));
    let file = |name: &str| folder.0.join(name);
    let files = TlsFiles {
        cert: file("cert.pem"),
        key: file("key.pem"),
        client_ca: asks.then(|| file("ca.pem")),
        revoked: asks.then(|| file("revoked.pem")),
    };
    let repository = repository(Vec::new(), VersionPolicy::default());
    repository.add("double", Arc::new(Times::new(2.0))).unwrap();
    let limits = Limits {
        handshake_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = builder(repository).limits(limits).tls(&files).unwrap();
    Encrypted {
        server: server.listen("127.0.0.1:0").unwrap().start().unwrap(),
        authority,
        _folder: folder,
    }
}

/// Returns how a client of an authority speaks, with a certificate or without.
fn config(authority: &Authority, card: Option<&Card>) -> ClientConfig {
    config_of(authority, card, ring::DEFAULT_CIPHER_SUITES.to_vec())
}

fn config_of(
    authority: &Authority,
    card: Option<&Card>,
    cipher_suites: Vec<SupportedCipherSuite>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(ca).unwrap();
    let mut provider = ring::default_provider();
    provider.cipher_suites = cipher_suites;
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    match card {
        None => builder.with_no_client_auth(),
        Some(card) => {
            let cert = CertificateDer::from_pem_slice(card.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(card.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    }
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks whether the model is ready. Returns the head of the answer.
fn ask(server: &Server, config: ClientConfig, name: &'static str) -> io::Result<String> {
    let name = ServerName::try_from(name).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(server));
    stream.write_all(
        b"GET /v2/models/double/ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    )?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // The server ends without more ado once the answer is sent.
        Err(error) if answer.is_empty() => Err(error),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

#[track_caller]
fn refused(answered: io::Result<String>) -> String {
    match answered {
        Ok(answer) => {
            assert_eq!(answer, "", "it was answered");
            "closed".to_owned()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn requests_are_answered_over_tls() {
    let it = encrypted("tls", false);
    let answer = ask(&it.server, config(&it.authority, None), "localhost").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Clients that can speak HTTP/2, as those of gRPC do, are told to.
    let mut both = config(&it.authority, None);
    both.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = ClientConnection::new(Arc::new(both), name).unwrap();
    connection.complete_io(&mut connect(&it.server)).unwrap();
    assert_eq!(connection.alpn_protocol(), Some(&b"h2"[..]));
}

#[test]
fn client_with_a_certificate_is_answered() {
    let it = encrypted("mtls", true);
    let card = it.authority.card(&client());
    let answer = ask(&it.server, config(&it.authority, Some(&card)), "localhost").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn clients_without_a_fitting_certificate_are_refused() {
    let it = encrypted("refused", true);
    let (own, other) = (&it.authority, Authority::new("other"));
    let mut expired = client();
    expired.not_after = date_time_ymd(2020, 1, 1);
    let mut early = client();
    early.not_before = date_time_ymd(3000, 1, 1);
    let mut revoked = client();
    revoked.serial_number = Some(SerialNumber::from(77));
    let alone = key();
    let alone = Card {
        cert: client().self_signed(&alone).unwrap().pem(),
        key: alone.serialize_pem(),
    };
    let of_server = params(ExtendedKeyUsagePurpose::ServerAuth);
    for (case, card, expected) in [
        ("none", None, "CertificateRequired"),
        (
            "of another authority",
            Some(other.card(&client())),
            "UnknownCA",
        ),
        ("expired", Some(own.card(&expired)), "CertificateExpired"),
        (
            "not valid yet",
            Some(own.card(&early)),
            "CertificateExpired",
        ),
        (
            "of a server",
            Some(own.card(&of_server)),
            "UnsupportedCertificate",
        ),
        ("revoked", Some(own.card(&revoked)), "CertificateRevoked"),
        ("its own authority", Some(alone), "UnknownCA"),
    ] {
        let answered = ask(&it.server, config(own, card.as_ref()), "localhost");
        let found = refused(answered);
        assert!(found.contains(expected), "{case}: {found}");
    }
}

#[test]
fn clients_that_speak_otherwise_are_closed() {
    let it = encrypted("otherwise", false);
    // The client itself refuses a server of another name, and one of another authority.
    let found = refused(ask(&it.server, config(&it.authority, None), "elsewhere"));
    assert!(found.contains("certificate"), "{found}");
    let found = refused(ask(
        &it.server,
        config(&Authority::new("other"), None),
        "localhost",
    ));
    assert!(found.contains("certificate"), "{found}");
    let hello_of_tls_1_1 = [
        &[22, 3, 1, 0, 47, 1, 0, 0, 43, 3, 2][..],
        &[7; 32],
        &[0, 0, 4, 0xc0, 0x13, 0, 0x2f, 1, 0],
    ]
    .concat();
    for sent in [
        &b"GET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"[..],
        &hello_of_tls_1_1,
        // A handshake that stops half way, and one that never begins.
        &hello_of_tls_1_1[..20],
        b"",
    ] {
        let mut stream = connect(&it.server);
        stream.write_all(sent).unwrap();
        let mut answer = Vec::new();
        // An alert of a few bytes at most, and the end.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 7, "{answer:?}");
    }
    // The server goes on.
    ask(&it.server, config(&it.authority, None), "localhost").unwrap();
}

#[test]
fn files_that_are_of_no_use_are_told_by_their_paths() {
    let (folder, authority) = (Folder::new("useless"), Authority::new("own"));
    let own = authority.card(&params(ExtendedKeyUsagePurpose::ServerAuth));
    let other = authority.card(&params(ExtendedKeyUsagePurpose::ServerAuth));
    for (name, text) in [
        ("cert", &own.cert),
        ("key", &own.key),
        ("other", &other.key),
        ("ca", &authority.pem()),
        ("empty", &String::new()),
        ("long", &"x".repeat(2 << 20)),
    ] {
        folder.write(name, text);
    }
    let path = |name: &str| folder.0.join(name);
    let refusal = |cert: &str, key: &str, ca: Option<&str>, revoked: Option<&str>| {
        let files = TlsFiles {
            cert: path(cert),
            key: path(key),
            client_ca: ca.map(path),
            revoked: revoked.map(path),
        };
        let repository = repository(Vec::new(), VersionPolicy::default());
        let error = builder(repository).tls(&files).err().unwrap();
        let folder = folder.0.display().to_string();
        error.message().replace(&folder, "DIR")
    };
    for (found, expected) in [
        (
            refusal("empty", "key", None, None),
            "certificate 'DIR/empty': expected a certificate in PEM, found none",
        ),
        (
            refusal("none", "key", None, None),
            "certificate 'DIR/none': cannot be read: No such file or directory",
        ),
        (
            refusal("long", "key", None, None),
            "certificate 'DIR/long': has more than 1048576 bytes",
        ),
        (
            refusal("cert", "cert", None, None),
            "key 'DIR/cert': no items found",
        ),
        (refusal("cert", "other", None, None), "key 'DIR/other': "),
        (
            refusal("cert", "key", Some("key"), None),
            "authority of clients 'DIR/key': expected a certificate in PEM, found none",
        ),
        (
            refusal("cert", "key", Some("ca"), Some("empty")),
            "revoked certificates 'DIR/empty': expected a list in PEM, found none",
        ),
        (
            refusal("cert", "key", None, Some("empty")),
            "revoked certificates 'DIR/empty': expected no list without the authority of clients",
        ),
    ] {
        assert!(found.starts_with(expected), "{found}\nnot {expected}");
    }
}
