//! How commands become tasks of a cluster: [`Plan`], from options and environment to a task that listens.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use tfrt::Runtime;
use tfrt_dist::cluster::{Address, Cluster};
use tfrt_dist::context::ContextConfig;
use tfrt_dist::join::{DEFAULT_TIMEOUT, JoinOptions, Joining, Secret};
use tfrt_dist::source::{self, Choice, Found};
use tfrt_dist::task;
use tfrt_host::Error;

use crate::console::Console;
use crate::failure::Failure;
use crate::options::MemberOptions;

/// The variable that has the secret that all tasks share.
const SECRET: &str = "TFRT_CLUSTER_SECRET";

/// The most bytes of a secret that are read.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// A process's part in a cluster, before it joins.
pub struct Plan<'o> {
    options: &'o MemberOptions,
    join: JoinOptions,
}

/// Returns the part of `tfrt run`, if it is to have one.
pub fn plan_of_run(options: &MemberOptions) -> Result<Option<Plan<'_>>, Failure> {
    let others = [
        ("--task", options.task.is_some()),
        ("--listen", options.listen.is_some()),
        ("--address-file", options.address_file.is_some()),
        ("--join-timeout", options.join_timeout.is_some()),
        ("--secret-file", options.secret_file.is_some()),
    ];
    match (
        &options.cluster,
        others.iter().find(|(_, is_there)| *is_there),
    ) {
        (Some(cluster), _) => Plan::new(options, Some(cluster), true).map(Some),
        (None, None) => Ok(None),
        (None, Some((name, _))) => Err(Failure::Usage(format!(
            "{name} is for tasks of a cluster, which --cluster names"
        ))),
    }
}

impl<'o> Plan<'o> {
    /// Finds the cluster and this task's place in it; without a cluster the lead will say both.
    pub fn new(
        options: &'o MemberOptions,
        cluster: Option<&str>,
        runs_program: bool,
    ) -> Result<Plan<'o>, Failure> {
        let listen = options.listen.as_deref().map(|listen| {
            let listen = Address::parse(listen);
            listen.map_err(|error| Failure::Usage(format!("--listen: {}", error.message())))
        });
        let listen = listen.transpose()?;
        let named = options.task.as_deref().map(|task| {
            let task = task::parse(task);
            task.map_err(|error| Failure::Usage(format!("--task: {}", error.message())))
        });
        let named = named.transpose()?;
        let config = match cluster {
            None if named.is_some() => {
                let message = "--task is for tasks of a cluster, which --cluster names";
                return Err(Failure::Usage(message.to_owned()));
            }
            None => None,
            Some(cluster) => {
                let found = found(cluster)?;
                let task = found.role(named.as_ref(), listen.as_ref(), runs_program);
                let task = task.map_err(|error| refused(&error))?;
                let cluster = found.cluster;
                Some(ContextConfig { cluster, task })
            }
        };
        let default_timeout = config.is_some().then_some(DEFAULT_TIMEOUT);
        let secret = secret(options, config.as_ref().map(|config| &config.cluster))?;
        Ok(Plan {
            join: JoinOptions {
                config,
                listen,
                secret,
                timeout: options.join_timeout.or(default_timeout),
            },
            options,
        })
    }

    /// Returns whether this task leads.
    pub fn leads(&self) -> bool {
        let config = self.join.config.as_ref();
        config.is_some_and(|config| *config.cluster.lead() == config.task)
    }

    /// Returns the name of this task, if it knows it.
    pub fn name(&self) -> Option<String> {
        let config = self.join.config.as_ref();
        config.map(|config| config.task.to_string())
    }

    /// Opens the port of this task, and says where it is.
    pub fn listen(&self, runtime: &Runtime, console: &Console) -> Result<Joining, Failure> {
        let joining = Joining::listen(runtime.host(), &self.join);
        let joining = joining.map_err(|error| refused(&error))?;
        let address = joining.address().to_string();
        let task = self.name();
        let document = serde_json::json!({
            "schema": "tfrt.listening/1", "task": task, "address": address
        });
        console.document(&document, || {
            let task = task.as_deref().unwrap_or("a task");
            format!("note: {task} listens at {address}\n")
        });
        if let Some(file) = &self.options.address_file {
            write_whole(file, &address)?;
        }
        Ok(joining)
    }
}

/// Finds the cluster that an option means, by the environment.
pub fn found(cluster: &str) -> Result<Found, Failure> {
    // What is no UTF-8 is told as such by what looks at it.
    let look_up = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    let found = source::find(&Choice::parse(cluster), &look_up);
    found.map_err(|error| refused(&error))?.ok_or_else(|| {
        let help = "start the tasks by an engine, as in `srun -n2 tfrt ..`, or name a file, as in `--cluster cluster.toml`";
        Failure::Rejected {
            code: None,
            message: "no cluster was found: neither TFRT_CLUSTER nor variables of torchrun, Slurm, Open MPI or Kubernetes are set".to_owned(),
            help: Some(help.to_owned()),
        }
    })
}

/// Makes a failure of an error about a cluster.
pub fn refused(error: &Error) -> Failure {
    Failure::Rejected {
        code: None,
        message: error.message().to_owned(),
        help: None,
    }
}

/// Returns what proves that tasks belong together. All that concerns security is decided here.
fn secret(options: &MemberOptions, cluster: Option<&Cluster>) -> Result<Option<Secret>, Failure> {
    if cluster.is_some_and(|cluster| cluster.tls().is_some()) {
        return Err(refused(&Error::unimplemented(
            "the cluster has certificates, [tls], and connections are not encrypted yet: leave them out, and have a secret",
        )));
    }
    let (from, bytes) = match (&options.secret_file, env::var_os(SECRET)) {
        (Some(file), _) => {
            let name = file.display();
            let mut bytes = Vec::new();
            let read = File::open(file).and_then(|file| {
                let mut file = file.take(MAX_SECRET_BYTES);
                file.read_to_end(&mut bytes)
            });
            read.map_err(|error| {
                refused(&Error::not_found(format!("cannot read '{name}': {error}")))
            })?;
            (format!("'{name}'"), bytes)
        }
        (None, Some(value)) => (SECRET.to_owned(), value.into_encoded_bytes()),
        (None, None) => return Ok(None),
    };
    let secret = Secret::new(bytes.trim_ascii_end().to_vec());
    let secret = secret.map_err(|why| refused(&Error::invalid_argument(format!("{from}: {why}"))));
    secret.map(Some)
}

/// Writes a file that whoever waits for it sees as a whole.
fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let unwritten = |reason| Failure::Write {
        path: path.to_owned(),
        reason,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    fs::write(&part, format!("{text}\n")).map_err(unwritten)?;
    fs::rename(&part, path).map_err(unwritten)
}
