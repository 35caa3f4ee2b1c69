//! The options of `tfrt serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use tfrt_run::QueueOption;
use tfrt_serve::{Batching, VersionPolicy};

use super::{DimOptions, parse_bytes, parse_duration};

/// Serve models to clients of Triton and of KServe, over HTTP and gRPC, until SIGTERM or Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt serve model.onnx                     as `model`, at 127.0.0.1:8000 and, as gRPC clients expect, 8001
  tfrt serve --name classifier=resnet50.onnx --name tokens=encoder/
  tfrt serve --repository models/           NAME/VERSION/model.onnx, NAME.onnx and SavedModels in a folder
  tfrt serve --repository models/ --check   what would be served, and what not, and why
  tfrt serve model.onnx --batch 32          requests that come while the model is busy are called together
  tfrt serve model.onnx --listen 0.0.0.0:8000 --insecure

  curl localhost:8000/v2/models/model
  curl localhost:8000/v2/models/model/infer -d \\
    '{\"inputs\": [{\"name\": \"x\", \"datatype\": \"FP32\", \"shape\": [1, 2], \"data\": [1, 2]}]}'

All addresses speak all protocols, HTTP/1.1 and HTTP/2. SIGTERM lets requests end; a second one ends the server at
once. docs/serve.md has the endpoints and the limits.")]
pub struct ServeOptions {
    /// Models: files of any format that `run` takes, folders that are SavedModels, or folders of versions by number
    #[arg(value_name = "MODEL", value_hint = ValueHint::AnyPath)]
    pub models: Vec<PathBuf>,

    /// Serve a model under a name of its own (may be repeated)
    #[arg(long = "name", value_name = "NAME=PATH", value_parser = parse_named)]
    pub named: Vec<(String, PathBuf)>,

    /// Serve the models in a folder (may be repeated)
    #[arg(long = "repository", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub repositories: Vec<PathBuf>,

    /// Versions of each model to serve: `all`, or how many of the newest
    #[arg(long, value_name = "N", value_parser = parse_versions, default_value = "1")]
    pub versions: VersionPolicy,

    /// Join requests into batches of so many rows at most, of all models that can be called so or of the one of a name;
    /// with a time, requests wait that long for others although the model is free (may be repeated)
    #[arg(long = "batch", value_name = "[NAME=]ROWS[,TIME]", value_parser = parse_batch)]
    pub batches: Vec<(Option<String>, Batching)>,

    /// Load the models, tell which can be served, and end
    #[arg(long)]
    pub check: bool,

    /// Listen at an address (may be repeated) [default: 127.0.0.1:8000 and 127.0.0.1:8001]
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Vec<String>,

    /// Listen also where other machines can reach it, although nothing is encrypted
    #[arg(long)]
    pub insecure: bool,

    #[command(flatten)]
    pub security: ServeSecurityOptions,

    /// Write the addresses at which the server listens to a file, a line for each, once it is ready
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub address_file: Option<PathBuf>,

    /// Send spans of requests to models to a collector, by OTLP over HTTP: http://127.0.0.1:4318
    /// [default: what OTEL_EXPORTER_OTLP_ENDPOINT says, else none]
    #[cfg(feature = "otel")]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub otlp: Option<String>,

    /// Let clients load and unload the models of the repository
    #[arg(long)]
    pub allow_repository: bool,

    /// The work queue that runs the kernels: `single`, or `multi[:THREADS[:BLOCKING]]`
    #[arg(long, value_name = "QUEUE", default_value = "multi")]
    pub queue: QueueOption,

    /// Threads that move bytes [default: one for each processor]
    #[arg(long, value_name = "N")]
    pub io_threads: Option<usize>,

    #[command(flatten)]
    pub dims: DimOptions,

    #[command(flatten)]
    pub limits: ServeLimitOptions,
}

/// Certificates and tokens that say which clients may ask. All files are read again when they change.
#[derive(Debug, Args)]
#[command(next_help_heading = "Security")]
pub struct ServeSecurityOptions {
    /// Encrypt connections by a certificate, in PEM, with those between it and its authority behind it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Ask clients for certificates that an authority has signed, whose own are in a file, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,

    /// Certificates of clients that were revoked: lists in PEM that their authority has signed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "client_ca")]
    pub client_revoked: Option<PathBuf>,

    /// Ask for tokens: lines of a token and what it may ask for, of `infer`, `metadata`, `repository` and `metrics`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
}

/// The bounds on what clients may ask for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct ServeLimitOptions {
    /// Bytes of the body of a request [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_request: Option<usize>,

    /// Requests to models that are there at once [default: 1024]
    #[arg(long, value_name = "N")]
    pub max_in_flight: Option<usize>,

    /// Bytes of the bodies of these [default: 1GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_bytes: Option<usize>,

    /// Bytes that the call of one request may hold at once
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub max_memory: Option<usize>,

    /// Connections that are open at once [default: 4096]
    #[arg(long, value_name = "N")]
    pub max_connections: Option<usize>,

    /// The time that a request may take, unless it asks for less [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub deadline: Option<Duration>,

    /// Go on to take connections for so long after SIGTERM, while `/v2/health/ready` says no
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0s")]
    pub drain_delay: Duration,

    /// Wait for requests for so long before they are cut off
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30s")]
    pub drain_timeout: Duration,
}

impl ServeLimitOptions {
    /// Returns the limits of the server.
    pub fn limits(&self) -> tfrt_serve::Limits {
        let rest = tfrt_serve::Limits::default();
        tfrt_serve::Limits {
            max_request_bytes: self.max_request.unwrap_or(rest.max_request_bytes),
            max_in_flight: self.max_in_flight.unwrap_or(rest.max_in_flight),
            max_in_flight_bytes: self.max_bytes.unwrap_or(rest.max_in_flight_bytes),
            max_call_bytes: self.max_memory,
            max_connections: self.max_connections.unwrap_or(rest.max_connections),
            deadline: self.deadline.unwrap_or(rest.deadline),
            ..rest
        }
    }
}

fn parse_named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        _ => Err("expected a name and a path: classifier=model.onnx".to_owned()),
    }
}

/// Reads `32`, `32,200us` or `classifier=32,2ms`.
fn parse_batch(text: &str) -> Result<(Option<String>, Batching), String> {
    let (name, rule) = match text.rsplit_once('=') {
        Some((name, rule)) => (Some(name.to_owned()), rule),
        None => (None, text),
    };
    let (rows, delay) = match rule.split_once(',') {
        Some((rows, delay)) => (rows, parse_duration(delay)?),
        None => (rule, Duration::ZERO),
    };
    match rows.parse() {
        Ok(max_rows @ 1..) if name.as_deref() != Some("") => {
            let max_delay = delay;
            let batching = Batching {
                max_rows,
                max_delay,
            };
            Ok((name, batching))
        }
        _ => Err(
            "expected a number of rows from 1, with a name in front or a time behind it or both: \
             32, classifier=32,200us"
                .to_owned(),
        ),
    }
}

fn parse_versions(text: &str) -> Result<VersionPolicy, String> {
    match text {
        "all" => Ok(VersionPolicy::All),
        number => match number.parse() {
            Ok(n_versions @ 1..) => Ok(VersionPolicy::Latest(n_versions)),
            _ => Err("expected `all` or a number from 1".to_owned()),
        },
    }
}
