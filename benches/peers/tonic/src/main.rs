//! `tonic-peer ADDRESS [N]` measures a call of gRPC's health service between two processes, the least that tonic has:
//! it starts itself as the server at ADDRESS, `unix:PATH` or `127.0.0.1:PORT`, and prints the median of N calls.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::{Channel, Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", address] => serve(address).await,
        [address] => measure(address, 5000).await,
        [address, n] => measure(address, n.parse()?).await,
        _ => Err("expected an address".into()),
    }
}

async fn serve(address: &str) -> Result<(), Failure> {
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().add_service(health);
    match address.strip_prefix("unix:") {
        Some(path) => {
            let incoming = UnixListenerStream::new(UnixListener::bind(path)?);
            server.serve_with_incoming(incoming).await?;
        }
        None => {
            let incoming = TcpListenerStream::new(TcpListener::bind(address).await?);
            server.serve_with_incoming(incoming).await?;
        }
    }
    Ok(())
}

async fn connect(address: &str) -> Result<Channel, tonic::transport::Error> {
    match address.strip_prefix("unix:") {
        Some(path) => {
            let path = path.to_owned();
            let dial = tower::service_fn(move |_| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            let endpoint = Endpoint::from_static("http://peer");
            endpoint.connect_with_connector(dial).await
        }
        None => {
            let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
            endpoint.tcp_nodelay(true).connect().await
        }
    }
}

async fn measure(address: &str, n: usize) -> Result<(), Failure> {
    let own = std::env::current_exe()?;
    let mut server = Command::new(own)
        .args(["serve", address])
        .stdin(Stdio::null())
        .spawn()?;
    let channel = loop {
        match connect(address).await {
            Ok(channel) => break channel,
            Err(error) if server.try_wait()?.is_some() => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let mut client = HealthClient::new(channel);
    let mut times = Vec::with_capacity(n);
    for _ in 0..n + n / 10 {
        let request = HealthCheckRequest {
            service: String::new(),
        };
        let begin = Instant::now();
        client.check(request).await?;
        times.push(begin.elapsed());
    }
    server.kill()?;
    server.wait()?;
    let mut times = times.split_off(n / 10);
    times.sort();
    println!("{:.1}", times[times.len() / 2].as_secs_f64() * 1e6);
    Ok(())
}
