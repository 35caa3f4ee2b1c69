//! Tasks whose connections are in TLS, and everybody who is refused there before a request of theirs is read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, SerialNumber, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tfrt_async::{Error, ErrorCode};
use tfrt_wire::endpoint::{Config, PeerId, bytes};
use tfrt_wire::event::Event;
use tfrt_wire::frame::{FrameLimits, HEADER_BYTES, Header, Kind};
use tfrt_wire::limits::Limits;
use tfrt_wire::message::{Failure, Hello};
use tfrt_wire::socket::{Address, Handler, Sockets, new_incarnation};
use tfrt_wire::tls::{Pem, Tls};

use crate::sockets::{Memory, contents, path, pattern, tcp};

pub mod authority;
use authority::{Authority, Card, params, self_signed};

const PATIENCE: Duration = Duration::from_secs(20);
const ONE: &str = "/job:w/task:0";
const OTHER: &str = "/job:w/task:1";

/// A task whose events, and refusals of whom it did not know, wait to be looked at.
struct Task {
    sockets: Sockets,
    events: Receiver<(PeerId, Event)>,
    refusals: Receiver<String>,
}

struct Told(
    Mutex<std::sync::mpsc::Sender<(PeerId, Event)>>,
    Mutex<std::sync::mpsc::Sender<String>>,
);

impl Handler for Told {
    fn event(&self, peer: PeerId, event: Event) {
        drop(self.0.lock().unwrap().send((peer, event)));
    }

    fn refused(&self, why: &str) {
        drop(self.1.lock().unwrap().send(why.to_owned()));
    }
}

fn tls(authority: &Authority, card: &Card, revoked: Option<&str>) -> Result<Tls, Error> {
    Tls::from_pem(&Pem {
        ca: authority.pem().as_bytes(),
        cert: card.cert.as_bytes(),
        key: card.key.as_bytes(),
        revoked: revoked.map(str::as_bytes),
    })
}

fn task(name: &str, tls: Option<&Tls>) -> Task {
    let config = Config {
        name: name.to_owned(),
        incarnation: new_incarnation().unwrap(),
        secret: None,
        has_certificates: false,
        accepts_unknown: true,
        limits: Limits {
            join_timeout: Duration::from_millis(400),
            hello_timeout: Duration::from_millis(300),
            ..Limits::default()
        },
    };
    let (tell, events) = channel();
    let (refuse, refusals) = channel();
    let told = Arc::new(Told(Mutex::new(tell), Mutex::new(refuse)));
    let sockets = match tls {
        Some(tls) => Sockets::start_tls(config, tls, Arc::new(Memory), told),
        None => Sockets::start(config, Arc::new(Memory), told),
    };
    Task {
        sockets: sockets.unwrap(),
        events,
        refusals,
    }
}

impl Task {
    fn wait<R>(&self, choose: impl Fn(Event) -> Option<R>) -> R {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let (_, event) = self.events.recv_timeout(left).expect("it comes");
            if let Some(found) = choose(event) {
                return found;
            }
        }
    }
}

/// The authority, the card of the first task and that of the second.
fn cluster() -> (Authority, Card, Card) {
    let authority = Authority::new("cluster");
    let one = authority.card(&params("/job/w/task/0"));
    let other = authority.card(&params("/job/w/task/1"));
    (authority, one, other)
}

fn asks_and_sends(address: &Address) {
    let (authority, one, other) = cluster();
    let one = task(ONE, Some(&tls(&authority, &one, None).unwrap()));
    let other = task(OTHER, Some(&tls(&authority, &other, None).unwrap()));
    let address = other.sockets.listen(address).unwrap();
    let to_other = one.sockets.add_peer(OTHER, Some(address)).unwrap();
    for n in 0..20_usize {
        let asked = pattern(n * 10_000);
        let id = one.sockets.request(to_other, 7, vec![bytes(asked.clone())]);
        let (call, body) = other.wait(|event| match event {
            Event::Request { call, body, .. } => Some((call, body)),
            _ => None,
        });
        assert!(body == asked);
        let to_one = other.sockets.peer(ONE).unwrap();
        let is_of_use = other.sockets.reply(to_one, call, Ok(vec![bytes(body)]));
        assert!(is_of_use.unwrap());
        let answer = one.wait(|event| match event {
            Event::Reply { id, body } => Some((id, body)),
            _ => None,
        });
        assert!(answer == (id.unwrap(), asked));
    }
    let to_one = other.sockets.peer(ONE).unwrap();
    for (from, to, peer) in [(&one, &other, to_other), (&other, &one, to_one)] {
        for len in [0, 1, 5_000_000] {
            let value = pattern(len);
            let parts = value.chunks(1 + len / 3).map(bytes).collect();
            from.sockets.send(peer, 1, b"key", "bytes", parts).unwrap();
            let came = to.wait(|event| match event {
                Event::Value { value, .. } => Some(contents(value)),
                _ => None,
            });
            assert!(came == value);
            from.wait(|event| matches!(event, Event::Sent(_)).then_some(()));
        }
    }
    // A session goes on over another connection in TLS.
    let value = pattern(20_000_000);
    let parts = vec![bytes(value.clone())];
    one.sockets
        .send(to_other, 1, b"key", "bytes", parts)
        .unwrap();
    one.sockets.break_connection(to_other);
    let came = other.wait(|event| match event {
        Event::Value { value, .. } => Some(contents(value)),
        _ => None,
    });
    assert!(came == value);
}

#[test]
fn tasks_ask_and_send_in_tls_over_tcp() {
    asks_and_sends(&tcp());
}

#[test]
fn tasks_ask_and_send_in_tls_over_unix_sockets() {
    asks_and_sends(&path("tls"));
}

/// Lets the first task dial the second and ask it something; returns what each says of the other.
fn refusal(one: Option<&Tls>, other: Option<&Tls>) -> (String, String) {
    let one = task(ONE, one);
    let other = task(OTHER, other);
    let address = other.sockets.listen(&tcp()).unwrap();
    let to_other = one.sockets.add_peer(OTHER, Some(address)).unwrap();
    one.sockets
        .request(to_other, 0, vec![bytes(b"not to be read")])
        .unwrap();
    let error = one.wait(|event| match event {
        Event::Failed { error, .. } => Some(error),
        _ => None,
    });
    assert_eq!(error.code(), ErrorCode::Unavailable);
    let seen = other.events.try_iter().collect::<Vec<_>>();
    assert!(seen.is_empty(), "{seen:?}");
    let told = other.refusals.recv_timeout(PATIENCE).expect("it is told");
    (error.message().to_owned(), told)
}

#[track_caller]
fn assert_refused(one: Option<&Tls>, other: Option<&Tls>, says: [&str; 2]) {
    let (dials, answers) = refusal(one, other);
    assert!(dials.contains(says[0]), "who dials: {dials}");
    assert!(answers.contains(says[1]), "who answers: {answers}");
}

/// Tries a card on both sides of a task that is well: as the one who dials, and as the one who answers. Of either the
/// first text is what its bearer is told, and the second what the other says.
#[track_caller]
fn assert_card_is_refused(
    make: impl Fn(&Authority, CertificateParams) -> Card,
    revoked: Option<&[u64]>,
    [bearer, other]: [&str; 2],
) {
    let (authority, good_one, good_other) = cluster();
    let list = revoked.map(|numbers| authority.revoked(numbers));
    let list = list.as_deref();
    let own = |card: &Card| tls(&authority, card, list).unwrap();
    let bad = own(&make(&authority, params("/job/w/task/0")));
    assert_refused(Some(&bad), Some(&own(&good_other)), [bearer, other]);
    let bad = own(&make(&authority, params("/job/w/task/1")));
    assert_refused(Some(&own(&good_one)), Some(&bad), [other, bearer]);
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let make = |_: &Authority, params: CertificateParams| Authority::new("other").card(&params);
    let bearer = "the peer refuses this task's certificate: its authority has not signed it";
    let other =
        "the peer's certificate is refused: the authority of this cluster has not signed it";
    assert_card_is_refused(make, None, [bearer, other]);
}

#[test]
fn a_certificate_signed_by_itself_is_refused() {
    let make = |_: &Authority, params: CertificateParams| self_signed(&params);
    let bearer = "the peer refuses this task's certificate: its authority has not signed it";
    let other =
        "the peer's certificate is refused: the authority of this cluster has not signed it";
    assert_card_is_refused(make, None, [bearer, other]);
}

#[test]
fn a_certificate_that_has_expired_is_refused() {
    let make = |authority: &Authority, mut params: CertificateParams| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        authority.card(&params)
    };
    let bearer = "the peer refuses this task's certificate: it has expired, or is not valid yet";
    let other = "the peer's certificate is refused: it has expired";
    assert_card_is_refused(make, None, [bearer, other]);
}

#[test]
fn a_certificate_that_is_not_valid_yet_is_refused() {
    let make = |authority: &Authority, mut params: CertificateParams| {
        params.not_before = date_time_ymd(3020, 1, 1);
        authority.card(&params)
    };
    let bearer = "the peer refuses this task's certificate: it has expired, or is not valid yet";
    let other = "the peer's certificate is refused: it is not valid yet";
    assert_card_is_refused(make, None, [bearer, other]);
}

#[test]
fn a_certificate_that_was_revoked_is_refused() {
    let make = |authority: &Authority, mut params: CertificateParams| {
        params.serial_number = Some(SerialNumber::from(7));
        authority.card(&params)
    };
    let bearer = "the peer refuses this task's certificate: it was revoked";
    let other = "the peer's certificate is refused: it was revoked";
    assert_card_is_refused(make, Some(&[6, 7]), [bearer, other]);
}

#[test]
fn a_certificate_of_another_task_is_refused() {
    let (authority, one, other) = cluster();
    let own = |card: &Card| tls(&authority, card, None).unwrap();
    // A task can't even begin under a name that is not its certificate's.
    let config = Config {
        name: OTHER.to_owned(),
        incarnation: 1,
        secret: None,
        has_certificates: false,
        accepts_unknown: true,
        limits: Limits::default(),
    };
    let told = Arc::new(|_, _| ());
    let started = Sockets::start_tls(config, &own(&one), Arc::new(Memory), told);
    let error = started.err().unwrap();
    assert_eq!(
        error.message(),
        "expected a certificate of /job:w/task:1, found one of /job:w/task:0"
    );
    // Names of other domains stand for nothing here.
    let mut stranger = params("");
    stranger.subject_alt_names.clear();
    let uri = "spiffe://elsewhere.test/job/w/task/0".try_into().unwrap();
    stranger.subject_alt_names.push(rcgen::SanType::URI(uri));
    let text = "expected a certificate of the domain 'cluster.test', found one of 'elsewhere.test'";
    let stranger = own(&authority.card(&stranger));
    let (dials, answers) = refusal(Some(&stranger), Some(&own(&other)));
    assert!(dials.contains("one of '"), "{dials}");
    assert_eq!(answers, text);
}

#[test]
fn a_hello_by_another_name_than_the_certificates_is_refused() {
    let (task, authority, at) = listener();
    let other = authority.card(&params("/job/w/task/2"));
    let (mut client, mut stream) = (client(Some(&other)), TcpStream::connect(at).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut both = rustls::Stream::new(&mut client, &mut stream);
    let hello = Hello {
        from: ONE.to_owned(),
        to: OTHER.to_owned(),
        incarnation: 5,
        session: 1,
        bound_to: 0,
        nonce: [0; 32],
        max_message_bytes: 1 << 20,
        has_secret: false,
        sums_data: false,
    };
    let payload = hello.encode();
    let header = Header {
        incarnation: 5,
        payload_len_bytes: payload.len() as u32,
        payload_crc: tfrt_wire::checksum(&payload),
        ..Header::new(Kind::Hello)
    };
    both.write_all(&header.encode()).unwrap();
    both.write_all(&payload).unwrap();
    let mut head = [0; HEADER_BYTES];
    both.read_exact(&mut head).unwrap();
    let max_message_bytes = 1 << 20;
    let header = Header::decode(&head, FrameLimits { max_message_bytes }).unwrap();
    let mut payload = vec![0; header.payload_len_bytes as usize];
    both.read_exact(&mut payload).unwrap();
    let failure = Failure::decode(header.kind, &payload).unwrap();
    let text = "expected a certificate of /job:w/task:0, found one of /job:w/task:2";
    assert_eq!(failure.code, ErrorCode::Unauthenticated);
    assert_eq!(failure.message, text);
    assert_eq!(task.refusals.recv_timeout(PATIENCE).unwrap(), text);
    assert!(task.sockets.peer(ONE).is_none());
}

#[test]
fn a_certificate_for_servers_alone_is_refused_of_who_dials_and_one_for_clients_of_who_answers() {
    let (authority, one, other) = cluster();
    let own = |card: &Card| tls(&authority, card, None).unwrap();
    let bearer = "refuses this task's certificate: its usage has to allow both clients and servers";
    let tells =
        "the peer's certificate is refused: its usage has to allow both clients and servers";
    let mut servers = params("/job/w/task/0");
    servers.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let servers = own(&authority.card(&servers));
    assert_refused(Some(&servers), Some(&own(&other)), [bearer, tells]);
    let mut clients = params("/job/w/task/1");
    clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let clients = own(&authority.card(&clients));
    assert_refused(Some(&own(&one)), Some(&clients), [tells, bearer]);
}

#[test]
fn a_task_without_tls_and_one_with_it_do_not_meet() {
    let (authority, one, other) = cluster();
    let own = |card: &Card| tls(&authority, card, None).unwrap();
    assert_refused(
        None,
        Some(&own(&other)),
        [
            "it speaks TLS, for which this task has no certificates",
            "expected TLS 1.3, found other bytes",
        ],
    );
    assert_refused(
        Some(&own(&one)),
        None,
        [
            "it has closed the connection before the handshake of TLS was done",
            "it speaks TLS, for which this task has no certificates",
        ],
    );
}

/// Returns a task that listens, and where.
fn listener() -> (Task, Authority, std::net::SocketAddr) {
    let (authority, _, other) = cluster();
    let other = task(OTHER, Some(&tls(&authority, &other, None).unwrap()));
    let Address::Tcp(at) = other.sockets.listen(&tcp()).unwrap() else {
        panic!("it is TCP");
    };
    (other, authority, at)
}

#[test]
fn who_shows_no_certificate_is_refused() {
    let (task, _, at) = listener();
    let mut client = client(None);
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut both = rustls::Stream::new(&mut client, &mut stream);
    drop(both.write(b"GET / HTTP/1.1\r\n\r\n"));
    let error = both.read(&mut [0; 64]).unwrap_err();
    assert!(error.to_string().contains("CertificateRequired"), "{error}");
    assert_eq!(
        task.refusals.recv_timeout(PATIENCE).unwrap(),
        "expected a certificate of the peer, found none"
    );
}

/// Returns a client that takes any server, with a certificate or without.
fn client(card: Option<&Card>) -> rustls::ClientConnection {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody));
    let config = match card {
        None => config.with_no_client_auth(),
        Some(card) => {
            let cert = CertificateDer::from_pem_slice(card.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(card.key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    let name = "task.invalid".try_into().unwrap();
    rustls::ClientConnection::new(Arc::new(config), name).unwrap()
}

/// A verifier that takes any certificate.
#[derive(Debug)]
struct Anybody;

impl rustls::client::danger::ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        let provider = rustls::crypto::ring::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Returns a `ClientHello` with these versions, cipher and extensions.
fn client_hello(version: u16, cipher: u16, extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]);
    body.extend([0, 0, 2]);
    body.extend(cipher.to_be_bytes());
    body.extend([1, 0]);
    let extensions = extensions.iter().flat_map(|(kind, bytes)| {
        let len = bytes.len() as u16;
        [&kind.to_be_bytes()[..], &len.to_be_bytes(), bytes].concat()
    });
    let extensions: Vec<u8> = extensions.collect();
    if !extensions.is_empty() {
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
    }
    let len = body.len() as u16;
    let head = [
        &[22, 3, 1][..],
        &(len + 4).to_be_bytes(),
        &[1, 0],
        &len.to_be_bytes(),
    ];
    [&head.concat()[..], &body].concat()
}

/// Sends bytes, and returns the kind of the alert that comes back.
fn alert_for(at: std::net::SocketAddr, hello: &[u8]) -> u8 {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(hello).unwrap();
    let mut alert = [0; 7];
    stream.read_exact(&mut alert).unwrap();
    assert_eq!(alert[..6], [21, 3, 3, 0, 2, 2]);
    alert[6]
}

#[test]
fn tls_1_1_is_refused() {
    let (task, _, at) = listener();
    let signatures: &[u8] = &[0, 2, 4, 3];
    let hello = client_hello(0x0302, 0x002f, &[(13, signatures)]);
    const PROTOCOL_VERSION: u8 = 70;
    assert_eq!(alert_for(at, &hello), PROTOCOL_VERSION);
    let why = task.refusals.recv_timeout(PATIENCE).unwrap();
    assert!(why.starts_with("expected TLS 1.3"), "{why}");
}

#[test]
fn a_cipher_that_nobody_has_is_refused() {
    let (task, _, at) = listener();
    let key_share = [&[0, 36, 0, 29, 0, 32][..], &[9; 32]].concat();
    let hello = client_hello(
        0x0303,
        0x1304,
        &[
            (43, &[2, 3, 4]),
            (10, &[0, 2, 0, 29]),
            (13, &[0, 2, 4, 3]),
            (51, &key_share),
        ],
    );
    const HANDSHAKE_FAILURE: u8 = 40;
    assert_eq!(alert_for(at, &hello), HANDSHAKE_FAILURE);
    let why = task.refusals.recv_timeout(PATIENCE).unwrap();
    assert!(why.starts_with("expected TLS 1.3 and a cipher"), "{why}");
}

#[test]
fn a_handshake_that_stops_half_way_is_given_up() {
    let (task, _, at) = listener();
    let hello = client_hello(0x0303, 0x1301, &[(43, &[2, 3, 4])]);
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&hello[..20]).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert_eq!(
        task.refusals.recv_timeout(PATIENCE).unwrap(),
        "the handshake took more than 300ms"
    );
}

#[test]
fn texts_that_are_no_certificates_are_refused_with_their_part() {
    let (authority, one, other) = cluster();
    let mixed = Card {
        key: other.key.clone(),
        ..one.clone()
    };
    let unnamed = authority.card(&CertificateParams::default());
    let none = Card {
        cert: String::new(),
        ..one.clone()
    };
    for (card, expected) in [
        (&mixed, "key: "),
        (
            &unnamed,
            "cert: expected a URI such as spiffe://DOMAIN/job/worker/task/1 among its names, found none",
        ),
        (&none, "cert: expected a certificate in PEM, found none"),
    ] {
        let error = tls(&authority, card, None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.message().starts_with(expected), "{error}");
    }
    let error = tls(&authority, &one, Some("nothing")).unwrap_err();
    assert_eq!(
        error.message(),
        "revoked: expected a list in PEM, found none"
    );
    assert_eq!(tls(&authority, &one, None).unwrap().task(), ONE);
}
