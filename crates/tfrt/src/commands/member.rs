//! How commands become tasks of a cluster: [`Plan`], from options and environment to a task that listens.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tfrt::Runtime;
use tfrt_async::ClusterTask;
use tfrt_dist::cluster::Address;
use tfrt_dist::context::ContextConfig;
use tfrt_dist::join::{DEFAULT_TIMEOUT, JoinOptions, Joining};
use tfrt_dist::security::{Access, Policy, Secret};
use tfrt_dist::source::{self, Choice, Found};
use tfrt_dist::task;
use tfrt_dist::transport::HearsRefusals;
use tfrt_host::Error;

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{Color, MemberOptions};

/// The variable that has the secret that all tasks share.
const SECRET: &str = "TFRT_CLUSTER_SECRET";

/// The most bytes of a secret that are read.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// The most refused connections that are told.
const MAX_TOLD_REFUSALS: usize = 19;

/// The longest time for which a lead that fails waits for the others, to tell them.
const LAST_WORDS: Duration = Duration::from_secs(3);

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
        ("--trust-peers", options.trust_peers),
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
        let folder = cluster.and_then(folder).unwrap_or_default();
        let (access, policy) = security(options, config.as_ref(), &folder)?;
        Ok(Plan {
            join: JoinOptions {
                config,
                listen,
                access,
                policy,
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

    /// Returns the cluster and this task, if it knows them.
    pub fn config(&self) -> Option<&ContextConfig> {
        self.join.config.as_ref()
    }

    /// Tells the others that this task has failed before it has met them, so that they do not wait for it.
    pub fn give_up(&self, failure: &Failure) {
        let failed = match failure.message() {
            Some(message) => format!("the lead has failed: {message}"),
            None => "the lead has failed: its program does not run".to_owned(),
        };
        let runtime = Runtime::new();
        // Where it can't listen they hear nothing.
        if let Ok(joining) = Joining::listen(runtime.host(), &self.join) {
            joining.give_up(&Error::failed_precondition(failed), LAST_WORDS);
        }
    }

    /// Opens the port of this task, and says where it is.
    pub fn listen(&self, runtime: &Runtime, console: &Console) -> Result<Joining, Failure> {
        let joining = Joining::listen(runtime.host(), &self.join);
        let joining = joining.map_err(|error| refused(&error))?;
        joining.on_refused(told_refusals(console));
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

/// Returns somebody who tells each reason why connections are refused once, and becomes silent before it is too much.
fn told_refusals(console: &Console) -> Arc<HearsRefusals> {
    // Notes have no colours.
    let console = Console::new(Color::Never, console.format());
    let told = Mutex::new(BTreeSet::new());
    Arc::new(move |why| {
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() > MAX_TOLD_REFUSALS || !told.insert(why.to_owned()) {
            return;
        }
        let rest = match told.len() > MAX_TOLD_REFUSALS {
            true => "; others are not told",
            false => "",
        };
        let document = serde_json::json!({ "schema": "tfrt.refused/1", "reason": why });
        console.document(&document, || {
            format!("note: a connection was refused: {why}{rest}\n")
        });
    })
}

/// Returns the name of a file, in which `{job}` and `{task}` stand for a task.
pub fn file_of(path: &Path, task: &ClusterTask) -> PathBuf {
    let name = path.to_string_lossy();
    match name.contains('{') {
        true => {
            let name = name.replace("{job}", &task.job);
            name.replace("{task}", &task.task.to_string()).into()
        }
        false => path.to_owned(),
    }
}

/// Returns the number of a task among those of its cluster.
pub fn number_of(config: &ContextConfig) -> Option<u32> {
    let mut tasks = config.cluster.tasks();
    let index = tasks.position(|(task, _)| task == config.task)?;
    u32::try_from(index).ok()
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

/// Returns the folder of the file that an option names, by which names in it are seen.
fn folder(cluster: &str) -> Option<PathBuf> {
    match Choice::parse(cluster) {
        Choice::File(path) => path.parent().map(Path::to_owned),
        Choice::Auto | Choice::Engine(_) => None,
    }
}

/// Returns how tasks prove that they belong together, and what the others may do.
fn security(
    options: &MemberOptions,
    config: Option<&ContextConfig>,
    folder: &Path,
) -> Result<(Access, Policy), Failure> {
    let secret = secret(options)?;
    let cluster = config.map(|config| &config.cluster);
    let access = match (secret, config) {
        (Some((from, _)), Some(config))
            if config.cluster.tls().is_some()
                || (config.cluster.security()).is_some_and(|own| own.secret.is_some()) =>
        {
            return Err(refused(&Error::invalid_argument(format!(
                "expected one way for tasks to prove who they are, found the secret of {from}, and [tls] or \
                 security.secret of the cluster's file"
            ))));
        }
        (Some((_, secret)), _) => Ok(Access::Secret(secret)),
        (None, Some(config)) => Access::of_cluster(&config.cluster, &config.task, folder),
        (None, None) => Ok(Access::ThisMachine),
    };
    let policy = match (options.trust_peers, cluster) {
        (true, _) => Ok(Policy::trusting()),
        (false, Some(cluster)) => cluster.policy(),
        (false, None) => Ok(Policy::default()),
    };
    let read = access.and_then(|access| Ok((access, policy?)));
    read.map_err(|error| refused(&error))
}

/// Reads the secret that an option or the variable names, and says which.
fn secret(options: &MemberOptions) -> Result<Option<(String, Secret)>, Failure> {
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
    match Secret::new(bytes.trim_ascii_end().to_vec()) {
        Ok(secret) => Ok(Some((from, secret))),
        Err(why) => Err(refused(&Error::invalid_argument(format!("{from}: {why}")))),
    }
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
