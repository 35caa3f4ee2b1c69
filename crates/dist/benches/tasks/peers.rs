//! The peers: bare sockets, tonic, Open MPI, gloo.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::task::{Network, VALUE};

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Two processes on a socket, and nothing else.
pub struct Bare {
    stream: Box<dyn Stream>,
    other: Child,
    value: Vec<u8>,
}

impl Bare {
    pub fn start(network: Network) -> Bare {
        let address = network.address("bare");
        let own = std::env::current_exe().expect("this runs");
        let other = Command::new(own)
            .args(["--bare", &address])
            .stdin(Stdio::null())
            .spawn()
            .expect("this can run twice");
        let dial = || -> std::io::Result<Box<dyn Stream>> {
            Ok(match address.strip_prefix("unix:") {
                Some(path) => Box::new(UnixStream::connect(path)?),
                None => {
                    let stream = TcpStream::connect(&address)?;
                    stream.set_nodelay(true)?;
                    Box::new(stream)
                }
            })
        };
        let stream = loop {
            match dial() {
                Ok(stream) => break stream,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Bare {
            stream,
            other,
            value: vec![7; VALUE],
        }
    }

    pub fn round_trip(&mut self) -> Duration {
        let mut message = [0; 64];
        let begin = Instant::now();
        self.stream.write_all(&message).expect("it is read");
        self.stream.read_exact(&mut message).expect("it comes");
        begin.elapsed()
    }

    pub fn send(&mut self) -> Duration {
        let begin = Instant::now();
        self.stream.write_all(&[1; 64]).expect("it is read");
        self.stream.write_all(&self.value).expect("it is read");
        self.stream.read_exact(&mut [0]).expect("it comes");
        begin.elapsed()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _over = self.other.kill();
        let _over = self.other.wait();
    }
}

/// Echoes messages of 64 bytes; where one begins with 1, takes a value and says one byte.
pub fn serve_bare(address: &str) {
    let mut stream: Box<dyn Stream> = match address.strip_prefix("unix:") {
        Some(path) => {
            let listener = UnixListener::bind(path).expect("it is free");
            Box::new(listener.accept().expect("it comes").0)
        }
        None => {
            let listener = TcpListener::bind(address).expect("it is free");
            let (stream, _) = listener.accept().expect("it comes");
            stream.set_nodelay(true).expect("it is open");
            Box::new(stream)
        }
    };
    let mut message = [0; 64];
    while stream.read_exact(&mut message).is_ok() {
        if message[0] == 0 {
            stream.write_all(&message).expect("it is read");
            continue;
        }
        // As a value that comes: memory that nobody has touched.
        let mut value = vec![0; VALUE];
        stream.read_exact(&mut value).expect("it comes");
        std::hint::black_box(&value);
        stream.write_all(&[1]).expect("it is read");
    }
}

/// The programs of others, where they are there.
pub struct Peers {
    tonic: Option<PathBuf>,
    mpi: Option<PathBuf>,
    torch: Option<String>,
}

impl Peers {
    pub fn find() -> Peers {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let built = target.unwrap_or_else(|| root.join("target")).join("peers");
        let tonic = built.join("tonic/release/tonic-peer");
        let mpi = built.join("allreduce-mpi");
        let _made = std::fs::create_dir_all(&built);
        let compiled = Command::new("mpicc")
            .args(["-O2", "-o"])
            .arg(&mpi)
            .arg(root.join("benches/peers/allreduce_mpi.c"))
            .status();
        let python = std::env::var("TFRT_PEERS_TORCH").unwrap_or_else(|_| "python3".to_owned());
        let imported = Command::new(&python)
            .args([
                "-c",
                "import torch.distributed as d; assert d.is_gloo_available()",
            ])
            .stderr(Stdio::null())
            .status();
        let is_done = |status: std::io::Result<std::process::ExitStatus>| {
            status.is_ok_and(|status| status.success())
        };
        let peers = Peers {
            tonic: tonic.exists().then_some(tonic),
            mpi: is_done(compiled).then_some(mpi),
            torch: is_done(imported).then_some(python),
        };
        for (name, is_there) in [
            ("tonic", peers.tonic.is_some()),
            ("Open MPI", peers.mpi.is_some()),
            ("gloo", peers.torch.is_some()),
        ] {
            if !is_there {
                println!("{name}: not there");
            }
        }
        peers
    }

    /// Returns the median of bare calls, in microseconds.
    pub fn tonic(&self, network: Network) -> Option<f64> {
        let mut command = Command::new(self.tonic.as_ref()?);
        command.arg(network.address("tonic")).arg("2000");
        output(&mut command)
    }

    /// Returns medians of all-reduces, in microseconds, by their names.
    pub fn all_reduce(&self, network: Network, len: usize, n: usize) -> Vec<(&'static str, f64)> {
        let (len, n) = (len.to_string(), n.to_string());
        let mut all = Vec::new();
        if let Some(mpi) = &self.mpi {
            let (name, layer) = match network {
                Network::Unix => ("Open MPI, shared memory", "vader,self"),
                Network::Tcp => ("Open MPI, TCP", "tcp,self"),
            };
            let mut command = Command::new("mpirun");
            command
                .args(["-np", "2", "--oversubscribe", "--mca", "btl", layer])
                .args(["--mca", "oob_tcp_if_include", "lo"])
                .args(["--mca", "btl_tcp_if_include", "lo"])
                .arg(mpi)
                .args([&len, &n])
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            all.extend(output(&mut command).map(|time| (name, time)));
        }
        // gloo has TCP alone.
        if let Some(python) = &self.torch {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let mut command = Command::new(python);
            command
                .arg(root.join("benches/peers/allreduce_gloo.py"))
                .args([&len, &n]);
            all.extend(output(&mut command).map(|time| ("gloo, TCP", time)));
        }
        all
    }
}

/// Returns the number that a command prints last.
fn output(command: &mut Command) -> Option<f64> {
    let output = command.stderr(Stdio::inherit()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().lines().last()?.parse().ok()
}
