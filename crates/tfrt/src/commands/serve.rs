//! `tfrt serve`: models for clients of KServe's protocol.

use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tfrt::serve::{
    Check, Ended, Loader, ModelLoader, Repository, Servable, Server, ServerBuilder, Source,
};
use tfrt::{Runtime, error_message};
use tfrt_bef::layout::MAGIC;

use super::limits::{compile_option, compiled_before};
use super::print_line;
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::{ServeOptions, ServeSecurityOptions};

/// The addresses that clients of the protocol try by themselves: the first for HTTP, the second for gRPC.
const ADDRESSES: [&str; 2] = ["127.0.0.1:8000", "127.0.0.1:8001"];

/// Serves until the process is told to end.
pub fn serve(options: &ServeOptions, console: &Console) -> Result<ExitStatus, Failure> {
    let began = Instant::now();
    let addresses = addresses(options)?;
    let queue = options.queue.start(None).map_err(Failure::Host)?;
    let runtime = Runtime::builder().queue(queue).build();
    let repository = repository(options, &runtime)?;
    let verdicts = repository.load_all().map_err(rejected)?;
    if verdicts.is_empty() {
        return Err(Failure::Rejected {
            code: None,
            message: "there is no model in the folders".to_owned(),
            help: None,
        });
    }
    let n_refused = verdicts
        .iter()
        .filter(|verdict| verdict.reason.is_some())
        .count();
    if options.check {
        for verdict in &verdicts {
            print_line(&line(verdict))?;
        }
        return Ok(match n_refused {
            0 => ExitStatus::Fine,
            _ => ExitStatus::Rejected,
        });
    }
    for verdict in verdicts.iter().filter(|verdict| verdict.reason.is_some()) {
        let document = serde_json::json!({
            "schema": "tfrt.not_served/1", "model": verdict.name, "version": verdict.version, "reason": verdict.reason
        });
        console.document(&document, || format!("warning: {}\n", line(verdict)));
    }
    if n_refused == verdicts.len() {
        return Err(Failure::Rejected {
            code: None,
            message: "there is no model that can be served".to_owned(),
            help: None,
        });
    }
    let server = start(options, &runtime, repository, &addresses)?;
    tell_ready(&server, options, began, console)?;
    let limits = &options.limits;
    let ended = server.serve(limits.drain_delay, limits.drain_timeout);
    match ended
        .map_err(|reason| failed(&format!("cannot hear signals: {}", error_message(&reason))))?
    {
        Ended::Drained => Ok(ExitStatus::Fine),
        Ended::CutOff => Ok(ExitStatus::Cancelled),
        Ended::Twice => super::output::end_process(ExitStatus::Interrupted as i32),
    }
}

/// Returns the addresses to listen at, none of which other machines can reach unless that was asked for.
fn addresses(options: &ServeOptions) -> Result<Vec<String>, Failure> {
    let given = &options.listen;
    let addresses: Vec<String> = match given.is_empty() {
        true => ADDRESSES.map(str::to_owned).into(),
        false => given.clone(),
    };
    for address in &addresses {
        let resolved = address.to_socket_addrs();
        let mut resolved = resolved.map_err(|reason| {
            Failure::Usage(format!(
                "'{}' is no address: {reason}",
                address.escape_debug()
            ))
        })?;
        let is_encrypted = options.security.tls_cert.is_some();
        let is_safe = is_encrypted || options.insecure;
        if !is_safe && resolved.any(|found: SocketAddr| !found.ip().is_loopback()) {
            return Err(Failure::Usage(format!(
                "'{address}' can be reached from other machines, and nothing is encrypted: `--tls-cert` and `--tls-key` encrypt, `--insecure` allows it as it is"
            )));
        }
    }
    Ok(addresses)
}

fn repository(options: &ServeOptions, runtime: &Runtime) -> Result<Repository, Failure> {
    let models = options.models.iter().map(|path| Source::Model {
        name: None,
        path: path.clone(),
    });
    let named = options.named.iter().map(|(name, path)| Source::Model {
        name: Some(name.clone()),
        path: path.clone(),
    });
    let folders = options.repositories.iter().cloned().map(Source::Folder);
    let sources: Vec<Source> = models.chain(named).chain(folders).collect();
    if sources.is_empty() {
        let message =
            "nothing is to be served: give models, `--name NAME=PATH` or `--repository DIR`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let compile_option = compile_option(&options.dims, false);
    if let Some(option) = compile_option {
        for source in &sources {
            match source {
                Source::Model { path, .. } if is_compiled(path) => {
                    let name = path.to_string_lossy();
                    return Err(Failure::Usage(compiled_before(option, &name)));
                }
                _ => {}
            }
        }
    }
    let loader = CommandLoader {
        models: ModelLoader::new(runtime).options(options.dims.open_options(true)),
        compile_option,
    };
    let mut repository = Repository::new(Arc::new(loader), sources, options.versions);
    for (name, batching) in &options.batches {
        repository = repository.batching(name.as_deref(), *batching);
    }
    Ok(repository)
}

/// Opens models as the options of the command say.
struct CommandLoader {
    models: ModelLoader,
    /// An option that says how models are compiled, and means nothing for those that were compiled before.
    compile_option: Option<&'static str>,
}

impl Loader for CommandLoader {
    fn recognises(&self, path: &Path) -> bool {
        self.models.recognises(path)
    }

    fn load(&self, path: &Path) -> Result<Arc<dyn Servable>, String> {
        match self.compile_option {
            Some(option) if is_compiled(path) => {
                let name = path.file_name().unwrap_or_default();
                Err(compiled_before(option, &name.to_string_lossy()))
            }
            _ => self.models.load(path),
        }
    }
}

/// Returns whether a file holds a program that was compiled.
fn is_compiled(path: &Path) -> bool {
    let mut first = [0; MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == MAGIC
}

fn start(
    options: &ServeOptions,
    runtime: &Runtime,
    repository: Repository,
    addresses: &[String],
) -> Result<Server, Failure> {
    let mut builder = Server::builder(runtime.host(), repository)
        .limits(options.limits.limits())
        .allow_changes(options.allow_repository);
    if let Some(n_threads) = options.io_threads {
        builder = builder.threads(n_threads);
    }
    builder = secured(builder, &options.security).map_err(rejected)?;
    #[cfg(feature = "otel")]
    {
        let traced = builder.traces(options.otlp.as_deref());
        builder = traced.map_err(rejected)?;
        builder = builder.on_warning(|text| eprintln!("warning: {text}"));
    }
    for address in addresses {
        let listening = builder.listen(address);
        builder = listening.map_err(|reason| {
            failed(&format!(
                "cannot listen at '{address}': {}",
                error_message(&reason)
            ))
        })?;
    }
    builder.start().map_err(|reason| {
        failed(&format!(
            "cannot start the server: {}",
            error_message(&reason)
        ))
    })
}

/// Sets the certificates and tokens of a server.
fn secured(
    mut builder: ServerBuilder,
    options: &ServeSecurityOptions,
) -> Result<ServerBuilder, tfrt::Error> {
    if let Some(file) = &options.token_file {
        builder = builder.tokens(file)?;
    }
    match (&options.tls_cert, &options.tls_key) {
        #[cfg(feature = "tls")]
        (Some(cert), Some(key)) => builder.tls(&tfrt::serve::TlsFiles {
            cert: cert.clone(),
            key: key.clone(),
            client_ca: options.client_ca.clone(),
            revoked: options.client_revoked.clone(),
        }),
        #[cfg(not(feature = "tls"))]
        (Some(_), Some(_)) => Err(tfrt::Error::new(
            tfrt::ErrorCode::Unimplemented,
            "`--tls-cert`: this build has no TLS (cargo feature `tls`)",
        )),
        _ => Ok(builder),
    }
}

/// Says where the server listens, and what it serves.
fn tell_ready(
    server: &Server,
    options: &ServeOptions,
    began: Instant,
    console: &Console,
) -> Result<(), Failure> {
    let addresses: Vec<String> = server.addresses().iter().map(ToString::to_string).collect();
    if let Some(path) = &options.address_file {
        let lines: String = addresses
            .iter()
            .map(|address| format!("{address}\n"))
            .collect();
        std::fs::write(path, lines).map_err(|reason| Failure::Write {
            path: path.clone(),
            reason,
        })?;
    }
    let names = server.repository().names();
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let document = serde_json::json!({
        "schema": "tfrt.serving/1", "addresses": addresses, "models": names, "ready_ms": ms
    });
    console.document(&document, || {
        let scheme = match options.security.tls_cert {
            None => "http://",
            Some(_) => "https://",
        };
        let (names, addresses) = (names.join(", "), addresses.join(&format!(" and {scheme}")));
        format!("note: serving {names} at {scheme}{addresses}, ready after {ms:.0} ms\n")
    });
    Ok(())
}

/// Writes `classifier 1: ready`, or the reason why not, or why not in batches.
fn line(verdict: &Check) -> String {
    let Check {
        name,
        version,
        reason,
        unbatched,
    } = verdict;
    match (reason, unbatched) {
        (None, None) => format!("{name} {version}: ready"),
        (None, Some(why)) => format!("{name} {version}: ready, but not in batches: {why}"),
        (Some(reason), _) => format!("{name} {version}: {reason}"),
    }
}

fn rejected(error: tfrt::Error) -> Failure {
    failed(error.message())
}

fn failed(message: &str) -> Failure {
    Failure::Rejected {
        code: None,
        message: message.to_owned(),
        help: None,
    }
}
