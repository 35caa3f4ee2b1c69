//! Engines: what started this process, and which task of how many it is.
//!
//! tfrt has no scheduler. Slurm, Open MPI, torchrun and its like, or Kubernetes start the processes, and tell each its
//! number by variables of the environment.

mod hosts;

use std::fmt;

use tfrt_async::Error;

use crate::cluster::Address;

pub use hosts::expand as expand_hosts;

/// The variable that states where the tasks meet, over what an engine says: `host:port`.
pub const RENDEZVOUS: &str = "TFRT_RENDEZVOUS";
/// The variable that states the number of tasks where the engine does not.
pub const WORLD_SIZE: &str = "TFRT_WORLD_SIZE";
/// The variable that states the service whose names the pods of Kubernetes have.
pub const SERVICE: &str = "TFRT_SERVICE";
/// The port of tasks where the engine states none.
pub const DEFAULT_PORT: u16 = 7000;

/// A program that starts tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The variables of torchrun, which many other launchers set, too.
    Torchrun,
    /// Slurm's `srun`.
    Slurm,
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// A StatefulSet or an indexed Job of Kubernetes.
    Kubernetes,
}

impl Engine {
    /// All engines, in the order in which they are looked for.
    pub const ALL: [Engine; 4] = [
        Engine::Torchrun,
        Engine::Slurm,
        Engine::OpenMpi,
        Engine::Kubernetes,
    ];

    /// Returns the name, as the option `--cluster` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Torchrun => "torchrun",
            Engine::Slurm => "slurm",
            Engine::OpenMpi => "openmpi",
            Engine::Kubernetes => "kubernetes",
        }
    }

    /// Returns the variables that say that it has started a process, for messages.
    pub(crate) fn variables(self) -> &'static str {
        match self {
            Engine::Torchrun => "RANK and WORLD_SIZE",
            Engine::Slurm => "SLURM_PROCID and SLURM_STEP_ID",
            Engine::OpenMpi => "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE",
            Engine::Kubernetes => "KUBERNETES_SERVICE_HOST and TFRT_WORLD_SIZE",
        }
    }
}

/// The place of this process among those that an engine has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The engine.
    pub engine: Engine,
    /// The number of this process: from 0 to below `n_ranks`.
    pub rank: u32,
    /// The number of processes.
    pub n_ranks: u32,
    /// The number of this process among those of its machine, where the engine says so.
    pub local_rank: Option<u32>,
    /// The address at which the processes meet: that of rank 0.
    pub rendezvous: Address,
    /// The hosts of all tasks by rank, where the engine tells them apart by name (Kubernetes).
    pub hosts: Vec<String>,
    /// The variables that said so, with their values.
    pub variables: Vec<(&'static str, String)>,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.engine.name();
        write!(f, "{name}: rank {} of {}", self.rank, self.n_ranks)
    }
}

/// The environment of a process: looks variables up, and notes which were there.
struct Variables<'a> {
    look_up: &'a dyn Fn(&str) -> Option<String>,
    seen: Vec<(&'static str, String)>,
}

impl Variables<'_> {
    fn text(&mut self, name: &'static str) -> Option<String> {
        let value = (self.look_up)(name).filter(|value| !value.is_empty())?;
        self.seen.push((name, value.clone()));
        Some(value)
    }

    fn needed(&mut self, name: &'static str, beside: &str) -> Result<String, Error> {
        self.text(name).ok_or_else(|| unset(name, beside))
    }

    fn number(&mut self, name: &'static str) -> Result<Option<u32>, Error> {
        let parse = |value: String| {
            let number = value.parse().ok().filter(|number| *number < 1 << 31);
            number.ok_or_else(|| {
                Error::invalid_argument(format!(
                    "{name}: expected a number from 0 to 2147483647, found '{value}'"
                ))
            })
        };
        self.text(name).map(parse).transpose()
    }

    fn needed_number(&mut self, name: &'static str, beside: &str) -> Result<u32, Error> {
        self.number(name)?.ok_or_else(|| unset(name, beside))
    }

    /// Returns the address that the user states.
    fn rendezvous(&mut self) -> Result<Option<Address>, Error> {
        let Some(text) = self.text(RENDEZVOUS) else {
            return Ok(None);
        };
        let address = Address::parse(&text);
        let address = address.map_err(|error| {
            Error::invalid_argument(format!("{RENDEZVOUS}: {}", error.message()))
        })?;
        Ok(Some(address))
    }
}

fn unset(name: &str, beside: &str) -> Error {
    Error::failed_precondition(format!("{beside} is set, but {name} is not"))
}

/// Finds out which engine has started this process, by the variables that `look_up` knows.
///
/// # Errors
///
/// `FailedPrecondition` if two engines say different things, or if one leaves out what is needed; `InvalidArgument` if a
/// variable is not of its form. The message names the variables.
pub fn detect(look_up: &dyn Fn(&str) -> Option<String>) -> Result<Option<Placement>, Error> {
    let mut found: Option<Placement> = None;
    let met_anywhere = |name: &str| match name == RENDEZVOUS {
        true => Some("0.0.0.0:0".to_owned()),
        false => look_up(name),
    };
    for engine in Engine::ALL {
        let other = match (placement(engine, look_up), &found) {
            // What is left out by a second engine does not matter, but for its rank.
            (Err(_), Some(_)) => match placement(engine, &met_anywhere) {
                Ok(other) => other,
                Err(_) => continue,
            },
            (other, _) => other?,
        };
        match (&found, other) {
            (None, other) => found = other,
            (Some(_), None) => (),
            (Some(first), Some(other)) => {
                if (first.rank, first.n_ranks) != (other.rank, other.n_ranks) {
                    return Err(disagreement(first, &other));
                }
            }
        }
    }
    Ok(found)
}

fn disagreement(first: &Placement, other: &Placement) -> Error {
    let told = |placement: &Placement| {
        let variables = placement.variables.iter().take(2);
        let variables = variables.map(|(name, value)| format!("{name}={value}"));
        variables.collect::<Vec<_>>().join(", ")
    };
    Error::failed_precondition(format!(
        "two engines say different things: {first} ({}), and {other} ({}); name one: --cluster {} or --cluster {}",
        told(first),
        told(other),
        first.engine.name(),
        other.engine.name()
    ))
}

/// Returns what one engine says of this process, if it has started it.
///
/// # Errors
///
/// Those of [`detect`] about one engine.
pub fn placement(
    engine: Engine,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Placement>, Error> {
    let mut variables = Variables {
        look_up,
        seen: Vec::new(),
    };
    let made = match engine {
        Engine::Torchrun => torchrun(&mut variables)?,
        Engine::Slurm => slurm(&mut variables)?,
        Engine::OpenMpi => open_mpi(&mut variables)?,
        Engine::Kubernetes => kubernetes(&mut variables)?,
    };
    let Some(mut placement) = made else {
        return Ok(None);
    };
    placement.variables = variables.seen;
    if placement.rank >= placement.n_ranks {
        let Placement { rank, n_ranks, .. } = placement;
        return Err(Error::invalid_argument(format!(
            "{}: expected a rank below the number of {n_ranks} tasks, found {rank}",
            engine.name()
        )));
    }
    Ok(Some(placement))
}

fn placed(
    engine: Engine,
    (rank, n_ranks): (u32, u32),
    local_rank: Option<u32>,
    rendezvous: Address,
) -> Placement {
    Placement {
        engine,
        rank,
        n_ranks,
        local_rank,
        rendezvous,
        hosts: Vec::new(),
        variables: Vec::new(),
    }
}

fn torchrun(variables: &mut Variables<'_>) -> Result<Option<Placement>, Error> {
    let Some(rank) = variables.number("RANK")? else {
        return Ok(None);
    };
    // A variable of this name alone is something else's.
    if (variables.look_up)("WORLD_SIZE").is_none() && (variables.look_up)("MASTER_ADDR").is_none() {
        return Ok(None);
    }
    let n_ranks = variables.needed_number("WORLD_SIZE", "RANK")?;
    let local_rank = variables.number("LOCAL_RANK")?;
    let rendezvous = match variables.rendezvous()? {
        Some(address) => address,
        None => {
            let host = variables.needed("MASTER_ADDR", "RANK")?;
            let port = variables.needed("MASTER_PORT", "MASTER_ADDR")?;
            address_of(&host, &port).map_err(|error| {
                Error::invalid_argument(format!("MASTER_ADDR, MASTER_PORT: {}", error.message()))
            })?
        }
    };
    let placed = placed(Engine::Torchrun, (rank, n_ranks), local_rank, rendezvous);
    Ok(Some(placed))
}

fn slurm(variables: &mut Variables<'_>) -> Result<Option<Placement>, Error> {
    // A script of a batch job has a rank, too; tasks have a step.
    if (variables.look_up)("SLURM_STEP_ID").is_none() {
        return Ok(None);
    }
    let Some(rank) = variables.number("SLURM_PROCID")? else {
        return Ok(None);
    };
    let n_ranks = match variables.number("SLURM_STEP_NUM_TASKS")? {
        Some(n_ranks) => n_ranks,
        None => variables.needed_number("SLURM_NTASKS", "SLURM_PROCID")?,
    };
    let local_rank = variables.number("SLURM_LOCALID")?;
    let rendezvous = match variables.rendezvous()? {
        Some(address) => address,
        None => {
            let list = variables.needed("SLURM_STEP_NODELIST", "SLURM_PROCID")?;
            let hosts = expand_hosts(&list).map_err(|error| {
                Error::invalid_argument(format!("SLURM_STEP_NODELIST: {}", error.message()))
            })?;
            let job = variables.needed_number("SLURM_JOB_ID", "SLURM_PROCID")?;
            let step = variables.needed_number("SLURM_STEP_ID", "SLURM_PROCID")?;
            Address::Tcp {
                host: hosts[0].clone(),
                port: port_of_job(job, step),
            }
        }
    };
    let placed = placed(Engine::Slurm, (rank, n_ranks), local_rank, rendezvous);
    Ok(Some(placed))
}

/// Returns the port at which the tasks of a step of a job meet: all know it, and steps at one time have different ones,
/// mostly.
fn port_of_job(job: u32, step: u32) -> u16 {
    let offset = (u64::from(job) * 31 + u64::from(step)) % 10_000;
    20_000 + u16::try_from(offset).unwrap_or(0)
}

fn open_mpi(variables: &mut Variables<'_>) -> Result<Option<Placement>, Error> {
    const RANK: &str = "OMPI_COMM_WORLD_RANK";
    let Some(rank) = variables.number(RANK)? else {
        return Ok(None);
    };
    let n_ranks = variables.needed_number("OMPI_COMM_WORLD_SIZE", RANK)?;
    let local_rank = variables.number("OMPI_COMM_WORLD_LOCAL_RANK")?;
    let rendezvous = variables.rendezvous()?.ok_or_else(|| {
        Error::failed_precondition(format!(
            "Open MPI states no address at which the tasks could meet: expected {RENDEZVOUS}, as in mpirun -x {RENDEZVOUS}=host:{DEFAULT_PORT}"
        ))
    })?;
    let placed = placed(Engine::OpenMpi, (rank, n_ranks), local_rank, rendezvous);
    Ok(Some(placed))
}

fn kubernetes(variables: &mut Variables<'_>) -> Result<Option<Placement>, Error> {
    if (variables.look_up)("KUBERNETES_SERVICE_HOST").is_none() {
        return Ok(None);
    }
    // Pods of all kinds have the variable; that tasks are meant is said by ours.
    let Some(n_ranks) = variables.number(WORLD_SIZE)? else {
        return match (variables.look_up)(SERVICE) {
            Some(_) => Err(unset(WORLD_SIZE, SERVICE)),
            None => Ok(None),
        };
    };
    let host = variables.needed("HOSTNAME", WORLD_SIZE)?;
    let refused = || {
        Error::invalid_argument(format!(
            "HOSTNAME: expected the name of a pod and its number, as in worker-1, found '{host}'"
        ))
    };
    let (set, ordinal) = host.rsplit_once('-').ok_or_else(refused)?;
    let rank = match variables.number("JOB_COMPLETION_INDEX")? {
        Some(index) => index,
        None => ordinal.parse().map_err(|_| refused())?,
    };
    let hosts: Vec<String> = match variables.text(SERVICE) {
        Some(service) => (0..n_ranks.min(1 << 16))
            .map(|rank| format!("{set}-{rank}.{service}"))
            .collect(),
        None => Vec::new(),
    };
    let rendezvous = match (variables.rendezvous()?, hosts.first()) {
        (Some(address), _) => address,
        (None, Some(first)) => address_of(first, &DEFAULT_PORT.to_string())?,
        (None, None) => {
            return Err(Error::failed_precondition(format!(
                "{WORLD_SIZE} is set, but neither {SERVICE}, the headless service of the pods, nor {RENDEZVOUS} is"
            )));
        }
    };
    let mut placed = placed(Engine::Kubernetes, (rank, n_ranks), None, rendezvous);
    placed.hosts = hosts;
    Ok(Some(placed))
}

/// Makes an address of a host and a port; an IPv6 address may be without brackets.
fn address_of(host: &str, port: &str) -> Result<Address, Error> {
    match host.contains(':') && !host.starts_with('[') {
        true => Address::parse(&format!("[{host}]:{port}")),
        false => Address::parse(&format!("{host}:{port}")),
    }
}
