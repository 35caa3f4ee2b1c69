//! Permissions and quotas of peers: roles by certificates, and ways to be let in.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tfrt_async::{AsyncValue, ClusterTask, Error, ErrorCode, Value};
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::ids::{ContextId, TaskHandle};
use tfrt_dist::kernels::SocketNetwork;
use tfrt_dist::message::{Key, Reply, Request};
use tfrt_dist::security::{Access, Policy, Quotas};
use tfrt_dist::server::Server;
use tfrt_dist::task;
use tfrt_dist::transport::socket::{SocketTransport, outside};
use tfrt_dist::transport::{Bounds, Transport};
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;
use tfrt_wire::endpoint::{Admission, Config, PeerId};
use tfrt_wire::event::Event;
use tfrt_wire::limits::Limits;
use tfrt_wire::message::Open;
use tfrt_wire::payload::Landing;
use tfrt_wire::socket::{Sockets, new_incarnation};

fn host() -> HostContext {
    HostContext::builder(KernelRegistry::new()).build()
}

fn worker(number: u32) -> ClusterTask {
    task::parse(&format!("/job:worker/task:{number}")).unwrap()
}

fn outcome<T: Value + Clone>(host: &HostContext, value: &AsyncValue<T>) -> Result<T, Error> {
    let until = Instant::now() + Duration::from_secs(60);
    let values = [value.as_any().clone()];
    assert!(host.queue().await_until(&values, Some(until)).unwrap());
    let value = value.clone().settled();
    value.get().unwrap().cloned().map_err(Error::clone)
}

fn ask(
    host: &HostContext,
    transport: &dyn Transport,
    peer: TaskHandle,
    request: Request,
) -> Result<Reply, Error> {
    outcome(host, &transport.call(peer, request, Bounds::default()))
}

fn execute() -> Request {
    Request::RemoteExecute {
        context: ContextId(1),
        name: "f".to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
    }
}

#[test]
fn a_flood_of_one_task_costs_no_other_its_answers() {
    let host = host();
    let network = SocketNetwork::Unix;
    let listen = || {
        let transport = SocketTransport::listen(&host, &network.address(), None);
        Arc::new(transport.unwrap())
    };
    let (asked, floods, other) = (listen(), listen(), listen());
    let server = Server::new(&host, asked.clone());
    server.set_policy(Policy::default().with_quotas(Quotas {
        requests: 8,
        ..Quotas::default()
    }));
    server.handle().hold();
    let peer = TaskHandle::draw();
    floods.introduce(peer, &worker(0), asked.address());
    other.introduce(peer, &worker(0), asked.address());
    let flood: Vec<_> = (0..100)
        .map(|_| floods.call(peer, execute(), Bounds::default()))
        .collect();
    for refused in &flood[8..] {
        let error = outcome(&host, refused).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ResourceExhausted);
        assert_eq!(
            error.message(),
            "a task may have 8 requests that are not answered yet"
        );
    }
    assert!(flood[..8].iter().all(|held| !held.is_settled()));
    assert!(ask(&host, &*other, peer, Request::GetDevices).is_ok());
    // What is answered makes room.
    for _ in 0..8 {
        drop(server.handle().process_next());
    }
    for held in &flood[..8] {
        let error = outcome(&host, held).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidDistributedContextId);
    }
    assert!(ask(&host, &*floods, peer, Request::GetDevices).is_ok());
}

#[test]
fn requests_are_bounded_by_their_bytes_too() {
    let host = host();
    let network = SocketNetwork::Unix;
    let [asked, asks] = [(); 2].map(|()| {
        let transport = SocketTransport::listen(&host, &network.address(), None);
        Arc::new(transport.unwrap())
    });
    let server = Server::new(&host, asked.clone());
    server.set_policy(Policy::default().with_quotas(Quotas {
        request_bytes: 10_000,
        ..Quotas::default()
    }));
    let peer = TaskHandle::draw();
    asks.introduce(peer, &worker(0), asked.address());
    let register = |len| Request::RegisterFunction {
        context: ContextId(1),
        name: "f".to_owned(),
        program: " ".repeat(len),
        need_compilation: false,
    };
    let error = ask(&host, &*asks, peer, register(20_000)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    let expected = "requests of a task that are not answered yet may have 10000 bytes: with another they have 20";
    assert!(error.message().starts_with(expected), "{error}");
    let error = ask(&host, &*asks, peer, register(100)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidDistributedContextId);
    // Longer than any message may be: refused here, and the connection goes on.
    let error = ask(&host, &*asks, peer, register(65 << 20)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    let expected = "expected a RegisterFunction of at most 67108864 bytes, found 6815";
    assert!(error.message().starts_with(expected), "{error}");
    assert!(ask(&host, &*asks, peer, Request::GetDevices).is_ok());
}

#[test]
fn nobody_listens_on_a_network_without_one_of_three_ways() {
    let everywhere = Address::parse("0.0.0.0:0").unwrap();
    let error = SocketTransport::listen(&host(), &everywhere, None).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PermissionDenied);
    let expected = "expected certificates, or a shared secret, or an address of this machine alone (loopback, or a \
                    Unix socket of the same user), found none of them";
    assert!(error.message().ends_with(expected), "{error}");
}

/// Somebody who speaks to a task in messages that no client of ours sends.
struct Stranger {
    sockets: Sockets,
    peer: PeerId,
    events: Receiver<(PeerId, Event)>,
}

struct NoValues;

impl Admission for NoValues {
    fn admit(&self, _: &str, _: u64, _: &Open) -> Result<Box<dyn Landing>, Error> {
        Err(Error::invalid_argument("no values"))
    }
}

impl Stranger {
    fn new(name: &str, address: &Address) -> Stranger {
        let config = Config {
            name: name.to_owned(),
            incarnation: new_incarnation().unwrap(),
            secret: None,
            has_certificates: false,
            accepts_unknown: true,
            limits: Limits::default(),
        };
        let (sender, events) = channel();
        let sender = Mutex::new(sender);
        let told = move |peer, event| drop(sender.lock().unwrap().send((peer, event)));
        let sockets = Sockets::start(config, Arc::new(NoValues), Arc::new(told)).unwrap();
        let Address::Unix(path) = address else {
            panic!("it is a path");
        };
        let place = tfrt_wire::socket::Address::Unix(path.into());
        let peer = sockets.add_peer(&address.to_string(), Some(place));
        Stranger {
            peer: peer.unwrap(),
            sockets,
            events,
        }
    }

    fn wait<R>(&self, choose: impl Fn(Event) -> Option<R>) -> R {
        loop {
            let (_, event) = self.events.recv_timeout(Duration::from_secs(60)).unwrap();
            if let Some(found) = choose(event) {
                return found;
            }
        }
    }

    fn refusal(&self, body: Vec<u8>) -> Error {
        let body = vec![tfrt_wire::endpoint::bytes(body)];
        self.sockets.request(self.peer, 0, body).unwrap();
        let body = self.wait(|event| match event {
            Event::Reply { body, .. } => Some(body),
            _ => None,
        });
        outside::read_answer(&body).unwrap().unwrap_err()
    }
}

#[test]
fn messages_that_no_client_sends_are_refused_and_others_answered() {
    let host = host();
    let asked = SocketTransport::listen(&host, &SocketNetwork::Unix.address(), None);
    let asked = Arc::new(asked.unwrap());
    let _server = Server::new(&host, asked.clone());
    let nameless = Stranger::new("stranger", asked.address());
    assert_eq!(
        nameless
            .refusal(outside::write_request(Request::GetDevices))
            .message(),
        "expected a client with the name 'client of ADDRESS', found another"
    );
    let stranger = Stranger::new("client of unix:/run/nowhere", asked.address());
    let error = stranger.refusal(b"no message".to_vec());
    assert_eq!(error.code(), ErrorCode::InvalidArgument);
    let expected = "a message between tasks, byte ";
    assert!(error.message().starts_with(expected), "{error}");
    // It says that a buffer of a value is to come that no memory holds.
    let key = Key {
        context: ContextId(1),
        name: "k".to_owned(),
    };
    let first = HostBuffer::from_owner([1_u8]);
    let error = stranger.refusal(outside::write_value(key, &first, 1 << 63).unwrap());
    assert_eq!(error.code(), ErrorCode::ResourceExhausted);
    // A value of another kind is refused before its bytes are taken.
    let parts = vec![tfrt_wire::endpoint::bytes(vec![0; 100])];
    let sent = stranger
        .sockets
        .send(stranger.peer, 1, b"key", "odd", parts);
    sent.unwrap();
    let error = stranger.wait(|event| match event {
        Event::SendFailed { error, .. } => Some(error),
        _ => None,
    });
    let expected = "expected the codec 'bytes', found 'odd'";
    assert!(error.message().ends_with(expected), "{error}");
    // For a start of the process that never was.
    let error = stranger.refusal(outside::write_request(Request::GetDevices));
    assert_eq!(error.code(), ErrorCode::FailedPrecondition);
    assert_eq!(error.message(), "stale incarnation");
}

/// Returns a folder for files of a test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tfrt-dist-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn cluster(rest: &str) -> Result<Cluster, Error> {
    Cluster::from_toml(&format!("{rest}\n[jobs.worker]\n0 = \"127.0.0.1:7000\"\n"))
}

#[test]
fn a_cluster_names_the_file_of_its_secret() {
    let folder = folder("secret");
    let with = cluster("[security]\nsecret = \"secret-{job}-{task}.txt\"").unwrap();
    let access = |cluster: &Cluster| Access::of_cluster(cluster, &worker(0), &folder);
    let missing = access(&with).unwrap_err();
    assert!(
        missing
            .message()
            .starts_with("security.secret, 'secret-worker-0.txt': can't be read: "),
        "{missing}"
    );
    let path = folder.join("secret-worker-0.txt");
    std::fs::write(&path, "short").unwrap();
    let expected = "expected a secret of at least 16 bytes, found 5";
    assert!(access(&with).unwrap_err().message().ends_with(expected));
    std::fs::write(&path, "a secret of 24 characters\n").unwrap();
    assert!(matches!(access(&with), Ok(Access::Secret(_))));
    std::fs::write(&path, vec![b'x'; 2 << 20]).unwrap();
    let error = access(&with).unwrap_err();
    assert!(
        error.message().ends_with("at most 1048576 bytes"),
        "{error}"
    );
    assert!(matches!(
        access(&cluster("").unwrap()),
        Ok(Access::ThisMachine)
    ));
    let both = "[security]\nsecret = \"s\"\n[tls]\nca = \"a\"\ncert = \"b\"\nkey = \"c\"";
    assert_eq!(
        access(&cluster(both).unwrap()).unwrap_err().message(),
        "expected certificates, [tls], or a secret, security.secret, found both"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_policy_that_makes_no_sense_is_refused_when_its_file_is_read() {
    let tls = "[tls]\nca = \"a\"\ncert = \"b\"\nkey = \"c\"\n";
    for (text, expected) in [
        (
            "[security.roles]\n\"/job:worker/task:*\" = [\"data\"]".to_owned(),
            "security.roles: expected certificates, [tls], by which names are proved, found none",
        ),
        (
            format!("{tls}[security.roles]\n\"worker\" = [\"data\"]"),
            "security.roles: expected a pattern such as /job:worker/task:*, found 'worker'",
        ),
        (
            format!("{tls}[security.roles]\n\"*\" = [\"admin\"]"),
            "line 6: unknown variant `admin`, expected one of `execute`, `register`, `data`, `trusted`",
        ),
        (
            format!("{tls}[security]\ntrusted = true\nroles = {{ \"*\" = [\"data\"] }}"),
            "security: expected `trusted`, of all who are let in, or `roles`, found both",
        ),
        (
            "[security.quotas]\nrequest = 1".to_owned(),
            "security.quotas: expected requests, request_bytes, waiting_bytes, objects, functions, program_bytes, \
             memory or seconds, found 'request'",
        ),
    ] {
        assert_eq!(cluster(&text).unwrap_err().message(), expected);
    }
    let quotas = cluster("[security.quotas]\nrequests = 7\nseconds = 3").unwrap();
    let policy = quotas.policy().unwrap();
    assert_eq!(policy.quotas().requests, 7);
    assert_eq!(policy.quotas().time, Duration::from_secs(3));
    let trusted = cluster("[security]\ntrusted = true").unwrap();
    assert_eq!(trusted.policy().unwrap(), Policy::trusting());
    // It concerns this task alone, and comes back as it was written.
    assert!(quotas.shared().security().is_none());
    assert_eq!(Cluster::from_toml(&quotas.to_toml()).unwrap(), quotas);
}

#[cfg(feature = "tls")]
mod certificates {
    use tfrt_dist::conformance::{self, Network};
    use tfrt_dist::context::ContextConfig;
    use tfrt_dist::security::Role;

    use super::authority::{Authority, params};
    use super::*;

    /// A cluster of two tasks, whose files lie in a folder.
    struct Bed {
        host: HostContext,
        folder: PathBuf,
        cluster: Cluster,
    }

    impl Bed {
        fn new(name: &str) -> Bed {
            let folder = folder(name);
            let authority = Authority::new("cluster");
            std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
            for task in 0..3 {
                let card = authority.card(&params(&format!("/job/worker/task/{task}")));
                std::fs::write(folder.join(format!("{task}.pem")), card.cert).unwrap();
                std::fs::write(folder.join(format!("{task}.key")), card.key).unwrap();
            }
            let [one, two] = [(); 2].map(|()| SocketNetwork::Tcp.address());
            let cluster = format!(
                "[tls]\nca = \"ca.pem\"\ncert = \"{{task}}.pem\"\nkey = \"{{task}}.key\"\n\
                 [jobs.worker]\n0 = \"{one}\"\n1 = \"{two}\"\n"
            );
            Bed {
                host: host(),
                folder,
                cluster: Cluster::from_toml(&cluster).unwrap(),
            }
        }

        fn listen(&self, number: u32) -> Arc<SocketTransport> {
            let task = worker(number);
            let access = Access::of_cluster(&self.cluster, &task, &self.folder).unwrap();
            let address = self.cluster.address(&task).cloned();
            let address = address.unwrap_or_else(|_| SocketNetwork::Tcp.address());
            let transport = SocketTransport::listen_with(&self.host, &address, None, &access);
            Arc::new(transport.unwrap())
        }
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }

    /// Sockets with certificates as a network under test. Its tasks are `/job:test/task:0`, `/job:test/task:1` and so on.
    struct Certified {
        network: SocketNetwork,
        folder: PathBuf,
        authority: Authority,
        addresses: Mutex<Vec<Address>>,
    }

    impl Certified {
        fn new(network: SocketNetwork, name: &str) -> Certified {
            let folder = folder(name);
            let authority = Authority::new("cluster");
            std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
            Certified {
                network,
                folder,
                authority,
                addresses: Mutex::default(),
            }
        }

        fn at(&self, host: &HostContext, address: &Address, number: usize) -> Arc<dyn Transport> {
            let card = self
                .authority
                .card(&params(&format!("/job/test/task/{number}")));
            std::fs::write(self.folder.join("task.pem"), card.cert).unwrap();
            std::fs::write(self.folder.join("task.key"), card.key).unwrap();
            let files = "[tls]\nca = \"ca.pem\"\ncert = \"task.pem\"\nkey = \"task.key\"\n";
            let cluster =
                Cluster::from_toml(&format!("{files}[jobs.test]\n{number} = \"{address}\"\n"));
            let task = task::parse(&format!("/job:test/task:{number}")).unwrap();
            let access = Access::of_cluster(&cluster.unwrap(), &task, &self.folder).unwrap();
            Arc::new(SocketTransport::listen_with(host, address, None, &access).unwrap())
        }
    }

    impl Network for Certified {
        fn listen(&self, host: &HostContext) -> Arc<dyn Transport> {
            let mut addresses = self.addresses.lock().unwrap();
            let transport = self.at(host, &self.network.address(), addresses.len());
            addresses.push(transport.address().clone());
            transport
        }

        fn restart(
            &self,
            transport: &dyn Transport,
            host: &HostContext,
        ) -> Option<Arc<dyn Transport>> {
            transport.close();
            let addresses = self.addresses.lock().unwrap();
            let address = transport.address();
            let number = addresses.iter().position(|known| known == address)?;
            Some(self.at(host, address, number))
        }
    }

    impl Drop for Certified {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }

    #[test]
    fn sockets_with_certificates_keep_the_promises() {
        for network in [SocketNetwork::Unix, SocketNetwork::Tcp] {
            conformance::suite(&|| Box::new(Certified::new(network, "conformance")));
        }
    }

    #[test]
    fn tasks_are_refused_what_their_roles_lack() {
        let bed = Bed::new("roles");
        let servers = [0, 1].map(|number| Server::new(&bed.host, bed.listen(number)));
        let policy = Policy::default().allow("/job:worker/task:0", &[Role::Data]);
        servers[1].set_policy(policy.unwrap());
        let config = ContextConfig {
            cluster: bed.cluster.clone(),
            task: worker(0),
        };
        let context = servers[0].create_single_client(ContextId(1), config);
        let context = outcome(&bed.host, &context).unwrap();
        let peer = context.handle_of(&worker(1)).unwrap();
        let call = |request| {
            let reply = context.call(peer, request, Bounds::default());
            outcome(&bed.host, &reply).unwrap_err()
        };
        let error = call(execute());
        assert_eq!(error.code(), ErrorCode::PermissionDenied);
        assert_eq!(
            error.to_string(),
            "/job:worker/task:1: /job:worker/task:0 may not ask for RemoteExecute: expected the role 'execute', found data"
        );
        let error = call(Request::RegisterFunction {
            context: ContextId(1),
            name: "f".to_owned(),
            program: String::new(),
            need_compilation: false,
        });
        let expected = "expected the role 'register', found data";
        assert!(error.message().ends_with(expected), "{error}");
        let sent = context.send(peer, "k", Default::default(), Bounds::default());
        outcome(&bed.host, &sent).unwrap();
        // The other way there are no rules.
        servers[1].set_policy(
            Policy::default()
                .allow("/job:other/*", &[Role::Data])
                .unwrap(),
        );
        let sent = context.send(peer, "k", Default::default(), Bounds::default());
        let error = outcome(&bed.host, &sent).unwrap_err();
        let expected = "may not ask for SendData: expected the role 'data', found none";
        assert!(error.message().ends_with(expected), "{error}");
    }

    #[test]
    fn a_task_is_taken_for_no_other() {
        let bed = Bed::new("names");
        let [one, two, three] = [0, 1, 2].map(|number| bed.listen(number));
        let server = Server::new(&bed.host, two.clone());
        let peer = TaskHandle::draw();
        let (tell, told) = channel();
        let tell = Mutex::new(tell);
        two.on_refused(Arc::new(move |why: &str| {
            drop(tell.lock().unwrap().send(why.to_owned()))
        }));
        // Who is dialled has another certificate than that of the task that is meant.
        one.introduce(peer, &worker(2), two.address());
        let error = ask(&bed.host, &*one, peer, Request::GetDevices).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unavailable);
        let expected = format!(
            "expected a hello to {0} as /job:worker/task:1, found one to {0} as /job:worker/task:2",
            two.address()
        );
        assert!(error.message().contains(&expected), "{error}");
        let told = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(told.starts_with(&expected), "{told}");
        one.introduce(peer, &worker(1), two.address());
        ask(&bed.host, &*one, peer, Request::GetDevices).unwrap();
        // Who listens where another task is known is refused.
        let known = TaskHandle::draw();
        two.introduce(known, &worker(1), three.address());
        three.introduce(peer, &worker(1), two.address());
        let error = ask(&bed.host, &*three, peer, Request::GetDevices).unwrap_err();
        assert_eq!(error.code(), ErrorCode::PermissionDenied);
        let expected = format!(
            "expected a certificate of /job:worker/task:1, which is known at {}, found one of /job:worker/task:2",
            three.address()
        );
        assert_eq!(error.message(), expected);
        drop(server);
    }

    #[test]
    fn a_certificate_of_another_task_is_refused_before_anything_listens() {
        let bed = Bed::new("files");
        let cluster = bed.cluster.to_toml().replace("{task}.", "1.");
        let cluster = Cluster::from_toml(&cluster).unwrap();
        let error = Access::of_cluster(&cluster, &worker(0), &bed.folder).unwrap_err();
        assert_eq!(
            error.message(),
            "tls.cert: expected a certificate of /job:worker/task:0, found one of /job:worker/task:1"
        );
        let error = Access::of_cluster(&bed.cluster, &worker(7), &bed.folder).unwrap_err();
        let expected = "tls.cert, '7.pem': can't be read: ";
        assert!(error.message().starts_with(expected), "{error}");
        std::fs::write(bed.folder.join("ca.pem"), "nothing").unwrap();
        let error = Access::of_cluster(&bed.cluster, &worker(0), &bed.folder).unwrap_err();
        let expected = "tls.ca: expected a certificate in PEM, found none";
        assert_eq!(error.message(), expected);
    }
}

#[cfg(feature = "tls")]
#[path = "../../../wire/tests/library/tls/authority.rs"]
#[allow(dead_code, reason = "the tests of sockets use the rest")]
mod authority;
