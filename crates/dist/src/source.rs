//! Sources of clusters: `--cluster`, the variable `TFRT_CLUSTER`, engines; and what they say together.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tfrt_async::{ClusterTask, Error};

use crate::cluster::{Address, Cluster, MAX_TASKS};
use crate::engine::{self, DEFAULT_PORT, Engine, Placement};

/// The variable that has a cluster as JSON.
pub const CLUSTER: &str = "TFRT_CLUSTER";
/// The job of tasks that an engine starts.
pub const JOB: &str = "worker";
/// The most bytes of a file of a cluster.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A choice of sources, as `--cluster` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `auto`: what the environment says.
    Auto,
    /// The name of an engine: what it says, whatever others say.
    Engine(Engine),
    /// A file, as TOML, or as JSON if its name ends so.
    File(PathBuf),
}

impl Choice {
    /// Parses the value of the option. A file that is called as an engine is written as a path, `./slurm`.
    pub fn parse(text: &str) -> Choice {
        let engine = Engine::ALL.into_iter().find(|engine| engine.name() == text);
        match (text, engine) {
            ("auto", _) => Choice::Auto,
            (_, Some(engine)) => Choice::Engine(engine),
            _ => Choice::File(PathBuf::from(text)),
        }
    }
}

/// The source that a cluster is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The variable [`CLUSTER`].
    Variable,
    /// The variables of an engine.
    Engine(Engine),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Variable => f.write_str(CLUSTER),
            Source::Engine(engine) => f.write_str(engine.name()),
        }
    }
}

/// A cluster, and this process's place in it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The source of the cluster.
    pub source: Source,
    /// The tasks. Addresses that only the tasks themselves will know are [`unknown_address`].
    pub cluster: Cluster,
    /// The place that an engine gives this process, if one has started it.
    pub placement: Option<Placement>,
    /// Which task this process is, if an engine says so.
    pub task: Option<ClusterTask>,
}

/// Returns the address that stands for one that a task will tell where the tasks meet.
pub fn unknown_address() -> Address {
    Address::Tcp {
        host: "0.0.0.0".to_owned(),
        port: 0,
    }
}

/// Finds the cluster that a choice means, by the variables that `look_up` knows; `None` if there is none.
///
/// # Errors
///
/// `FailedPrecondition` if two sources say different things, or if something is missing; `InvalidArgument` or `NotFound` if a
/// file or a variable is not as it should be. The message names the file or the variables.
pub fn find(
    choice: &Choice,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Found>, Error> {
    if let Choice::Engine(engine) = choice {
        let placement = engine::placement(*engine, look_up)?.ok_or_else(|| {
            let name = engine.name();
            Error::failed_precondition(format!(
                "{name} was asked for, but its variables are not set: expected {}",
                engine.variables()
            ))
        })?;
        return of_engine(placement).map(Some);
    }
    let of_file = match choice {
        Choice::File(path) => Some((Source::File(path.clone()), read(path)?)),
        _ => None,
    };
    let of_variable = look_up(CLUSTER).filter(|text| !text.trim().is_empty());
    let of_variable = of_variable.map(|text| match Cluster::from_json(&text) {
        Ok(cluster) => Ok((Source::Variable, cluster)),
        // The name of a file, say.
        Err(_) if !text.trim_start().starts_with('{') => Err(Error::invalid_argument(format!(
            "{CLUSTER}: expected a cluster as JSON, found '{text}'; a file is named by --cluster FILE"
        ))),
        Err(error) => Err(Error::invalid_argument(format!(
            "{CLUSTER}: {}",
            error.message()
        ))),
    });
    let of_variable = of_variable.transpose()?;
    if let (Some((file, one)), Some((variable, other))) = (&of_file, &of_variable)
        && one != other
    {
        let (one, other) = difference(one, other);
        return Err(Error::failed_precondition(format!(
            "two sources say different things: {file} has {one}, and {variable} {other}; leave one out"
        )));
    }
    let placement = engine::detect(look_up)?;
    let Some((source, cluster)) = of_file.or(of_variable) else {
        return placement.map(of_engine).transpose();
    };
    let task = match &placement {
        None => None,
        Some(placement) => Some(task_of(placement, &source, &cluster)?),
    };
    Ok(Some(Found {
        source,
        cluster,
        placement,
        task,
    }))
}

impl Found {
    /// Returns which task this process is: the one that it is told, by a name or by the address at which it is to listen, or
    /// that an engine says; if nobody says it, and it runs the program, the lead.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if two say different things, or nobody does; `TaskNotFound` if there is no such task.
    pub fn role(
        &self,
        named: Option<&ClusterTask>,
        listen: Option<&Address>,
        runs_program: bool,
    ) -> Result<ClusterTask, Error> {
        if let Some(named) = named {
            self.cluster.address(named)?;
            return match &self.task {
                Some(task) if task != named => {
                    let engine = self.placement.as_ref().map(ToString::to_string);
                    let engine = engine.unwrap_or_default();
                    Err(Error::failed_precondition(format!(
                        "two sources say different things: this task is to be {named}, and {engine} is {task}"
                    )))
                }
                _ => Ok(named.clone()),
            };
        }
        let at = |listen: &Address| {
            let mut tasks = self.cluster.tasks();
            Some(tasks.find(|(_, address)| *address == listen)?.0)
        };
        let found = self.task.clone().or_else(|| listen.and_then(at));
        let lead = || runs_program.then(|| self.cluster.lead().clone());
        found.or_else(lead).ok_or_else(|| {
            Error::failed_precondition(format!(
                "nobody says which of the {} tasks of {} this one is: name it, as in --task {}",
                self.cluster.n_tasks(),
                self.source,
                self.cluster
                    .tasks()
                    .last()
                    .map_or_else(String::new, |(task, _)| task.to_string())
            ))
        })
    }
}

fn read(path: &Path) -> Result<Cluster, Error> {
    let name = path.display();
    let unread = |error: io::Error| {
        // A word may be meant as an engine.
        let words = match path.extension().is_none() && path.components().count() == 1 {
            true => "; other than files there are auto, torchrun, slurm, openmpi and kubernetes",
            false => "",
        };
        Error::not_found(format!("cannot read '{name}': {error}{words}"))
    };
    let mut text = String::new();
    let file = File::open(path).map_err(unread)?;
    // What a device gives has no end.
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    if read.map_err(unread)? as u64 > MAX_FILE_BYTES {
        return Err(Error::invalid_argument(format!(
            "'{name}': expected a file of at most {MAX_FILE_BYTES} bytes, found more"
        )));
    }
    let cluster = match path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        true => Cluster::from_json(&text),
        false => Cluster::from_toml(&text),
    };
    cluster.map_err(|error| Error::invalid_argument(format!("'{name}': {}", error.message())))
}

/// Returns what two clusters have that differs.
fn difference(one: &Cluster, other: &Cluster) -> (String, String) {
    let tasks = |cluster: &Cluster| format!("{} tasks", cluster.n_tasks());
    if one.n_tasks() != other.n_tasks() {
        return (tasks(one), tasks(other));
    }
    let told = |(task, address): (ClusterTask, &Address)| format!("{task} at {address}");
    let pairs = one.tasks().map(told).zip(other.tasks().map(told));
    let lead = |cluster: &Cluster| format!("the lead {}", cluster.lead());
    let mut pairs = pairs.chain([(lead(one), lead(other))]);
    let differing = pairs.find(|(one, other)| one != other);
    differing.unwrap_or_else(|| {
        (
            "some groups or certificates".to_owned(),
            "others".to_owned(),
        )
    })
}

/// Returns which task of a cluster the process of a rank is: ranks count the tasks by job and number.
fn task_of(
    placement: &Placement,
    source: &Source,
    cluster: &Cluster,
) -> Result<ClusterTask, Error> {
    let (n_tasks, n_ranks) = (cluster.n_tasks(), placement.n_ranks);
    if u32::try_from(n_tasks) != Ok(n_ranks) {
        let variables = placement.variables.iter().take(2);
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        let variables: Vec<String> = variables.collect();
        return Err(Error::failed_precondition(format!(
            "two sources say different things: {source} has {n_tasks} tasks, and {placement} ({}) says {n_ranks}",
            variables.join(", ")
        )));
    }
    let nth = cluster.tasks().nth(placement.rank as usize);
    Ok(nth.expect("a rank is below the number of tasks").0)
}

/// Makes the cluster of what an engine says.
fn of_engine(placement: Placement) -> Result<Found, Error> {
    let n_ranks = placement.n_ranks as usize;
    if n_ranks > MAX_TASKS {
        return Err(Error::invalid_argument(format!(
            "{}: expected at most {MAX_TASKS} tasks, found {n_ranks}",
            placement.engine.name()
        )));
    }
    let address = |rank: usize| match (rank, placement.hosts.get(rank)) {
        (0, _) => placement.rendezvous.clone(),
        (_, Some(host)) => Address::Tcp {
            host: host.clone(),
            port: DEFAULT_PORT,
        },
        (_, None) => unknown_address(),
    };
    let cluster = Cluster::of_job(JOB, (0..n_ranks).map(address).collect())?;
    let source = Source::Engine(placement.engine);
    let task = task_of(&placement, &source, &cluster)?;
    Ok(Found {
        source,
        cluster,
        placement: Some(placement),
        task: Some(task),
    })
}
