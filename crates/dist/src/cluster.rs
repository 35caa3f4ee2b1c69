//! Clusters: which tasks there are, where they listen, and which of them work together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tfrt_async::{ClusterTask, Error, ErrorCode};

use crate::security::{Policy, SecurityOptions};
use crate::task;

/// The most tasks of a cluster.
pub const MAX_TASKS: usize = 1 << 16;

/// The tasks of a cluster with their addresses, and groups of them for collectives.
///
/// Invariant: all tasks that it names are among those with an address, and no two tasks have one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    lead: ClusterTask,
    jobs: BTreeMap<String, BTreeMap<u32, Address>>,
    groups: BTreeMap<String, Vec<ClusterTask>>,
    tls: Option<Box<TlsFiles>>,
    security: Option<Box<SecurityOptions>>,
}

/// The place where a task listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// A host, by name or number (IPv6 in brackets), and a TCP port.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket, by its path: `unix:/run/worker.sock`.
    Unix(String),
}

/// The files of the certificates with which tasks prove who they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate of the authority that signed those of all tasks.
    pub ca: String,
    /// The certificate of this task.
    pub cert: String,
    /// Its private key.
    pub key: String,
    /// Lists of certificates that were revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<String>,
}

/// The form of the file: TOML, or the same as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lead: Option<String>,
    jobs: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<Box<TlsFiles>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    security: Option<Box<SecurityOptions>>,
}

impl Address {
    /// Parses an address: `host:port`, `[::1]:port`, or `unix:` and an absolute path. Tasks are known by the text of their
    /// addresses, of which there is one for each way to write: a host is in lower case, an IPv6 address as short as it can
    /// be, a path without `.` and empty parts. `localhost` and `127.0.0.1` stay two.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, with what was expected.
    pub fn parse(text: &str) -> Result<Address, Error> {
        let refused = |expected: &str| {
            Error::invalid_argument(format!("expected {expected}, found '{text}'"))
        };
        if let Some(path) = text.strip_prefix("unix:") {
            // The limit of Linux, the closing zero included.
            let fits = path.starts_with('/') && path.len() < 108 && !path.contains('\0');
            return match fits {
                true => {
                    let parts = path.split('/');
                    let parts = parts.filter(|part| !part.is_empty() && *part != ".");
                    let path = parts.map(|part| format!("/{part}")).collect::<String>();
                    match path.is_empty() {
                        true => Err(refused("a path of a file behind unix:")),
                        false => Ok(Address::Unix(path)),
                    }
                }
                false => Err(refused(
                    "an absolute path of less than 108 bytes behind unix:",
                )),
            };
        }
        let (host, port) = text
            .rsplit_once(':')
            .ok_or_else(|| refused("an address such as host:7000 or unix:/path"))?;
        let is_name = |host: &str| {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|c| c.is_ascii_alphanumeric() || b".-_".contains(&c))
        };
        let number = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .and_then(|host| host.parse::<std::net::Ipv6Addr>().ok());
        if !is_name(host) && number.is_none() {
            return Err(refused(
                "a host of letters, digits, '.', '-' and '_', or an IPv6 address in brackets",
            ));
        }
        // A sign is no part of a port.
        let port = Some(port).filter(|port| port.bytes().all(|c| c.is_ascii_digit()));
        let port = port.and_then(|port| port.parse().ok());
        Ok(Address::Tcp {
            host: match number {
                Some(number) => format!("[{number}]"),
                None => host.to_ascii_lowercase(),
            },
            port: port.ok_or_else(|| refused("a port from 0 to 65535 behind the last ':'"))?,
        })
    }
}

impl Address {
    /// Returns the address of a port of a host that is known by its number.
    pub fn of_host(host: IpAddr, port: u16) -> Address {
        let host = match host {
            IpAddr::V4(host) => host.to_string(),
            IpAddr::V6(host) => format!("[{host}]"),
        };
        Address::Tcp { host, port }
    }

    /// Returns whether the address is one that only the task itself will know: port 0, any that is free.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Address::Tcp { port: 0, .. })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

impl Cluster {
    /// Makes a cluster of one job.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` without addresses, of more than [`MAX_TASKS`], or if two are the same.
    pub fn of_job(job: &str, addresses: Vec<Address>) -> Result<Cluster, Error> {
        let tasks = (0..).zip(addresses).collect();
        let mut cluster = Cluster {
            lead: ClusterTask {
                job: job.to_owned(),
                task: 0,
            },
            jobs: BTreeMap::from([(job.to_owned(), tasks)]),
            groups: BTreeMap::new(),
            tls: None,
            security: None,
        };
        cluster.check()?;
        cluster.add_group_of_all();
        Ok(cluster)
    }

    /// Reads a cluster from TOML.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, with the line where the text is no TOML, or with the entry that is wrong.
    pub fn from_toml(text: &str) -> Result<Cluster, Error> {
        let written = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map_or_else(String::new, |span| {
                let before = &text.as_bytes()[..span.start.min(text.len())];
                let n_lines = before.iter().filter(|byte| **byte == b'\n').count();
                format!("line {}: ", n_lines + 1)
            });
            Error::invalid_argument(format!("{line}{}", error.message().replace('\n', ", ")))
        })?;
        Cluster::of_written(written)
    }

    /// Reads a cluster from JSON of the same entries.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, with the place where the text is no JSON, or with the entry that is wrong.
    pub fn from_json(text: &str) -> Result<Cluster, Error> {
        let written = serde_json::from_str(text)
            .map_err(|error| Error::invalid_argument(error.to_string()))?;
        Cluster::of_written(written)
    }

    /// Writes the cluster as TOML, which [`Cluster::from_toml`] reads.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.written()).expect("maps and lists of texts are TOML")
    }

    /// Writes the cluster as JSON, which [`Cluster::from_json`] reads.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.written()).expect("maps and lists of texts are JSON")
    }

    fn written(&self) -> Written {
        let jobs = self.jobs.iter().map(|(job, tasks)| {
            let tasks = tasks.iter();
            let tasks = tasks.map(|(task, address)| (task.to_string(), address.to_string()));
            (job.clone(), tasks.collect())
        });
        let groups = self.groups.iter().map(|(name, members)| {
            let members = members.iter().map(ClusterTask::to_string);
            (name.clone(), members.collect())
        });
        Written {
            lead: Some(self.lead.to_string()),
            jobs: jobs.collect(),
            groups: groups.collect(),
            tls: self.tls.clone(),
            security: self.security.clone(),
        }
    }

    /// Returns the task that leads: it makes the context, and calls the program.
    pub fn lead(&self) -> &ClusterTask {
        &self.lead
    }

    /// Returns the number of tasks.
    pub fn n_tasks(&self) -> usize {
        self.jobs.values().map(BTreeMap::len).sum()
    }

    /// Returns all tasks with their addresses, by job and number.
    pub fn tasks(&self) -> impl Iterator<Item = (ClusterTask, &Address)> {
        self.jobs.iter().flat_map(|(job, tasks)| {
            tasks.iter().map(|(task, address)| {
                let task = ClusterTask {
                    job: job.clone(),
                    task: *task,
                };
                (task, address)
            })
        })
    }

    /// Returns the address of a task.
    ///
    /// # Errors
    ///
    /// `TaskNotFound`, with the part of the name that there is not.
    pub fn address(&self, task: &ClusterTask) -> Result<&Address, Error> {
        let ClusterTask { job, task } = task;
        let refused = |what: String| {
            Error::new(
                ErrorCode::TaskNotFound,
                format!(
                    "Failed to get TaskHandle for job_name={job}, task_id={task}: the {what} does not exist."
                ),
            )
        };
        let tasks = self.jobs.get(job);
        let tasks = tasks.ok_or_else(|| refused(format!("job {job}")))?;
        let address = tasks.get(task);
        address.ok_or_else(|| refused(format!("task {task}")))
    }

    /// Returns the members of a group, in the order in which the file states them; `all` is a group of all tasks where
    /// the file states no other.
    pub fn group(&self, name: &str) -> Option<&[ClusterTask]> {
        self.groups.get(name).map(Vec::as_slice)
    }

    /// Returns the names of the groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// Returns the cluster with other addresses of some tasks.
    ///
    /// # Errors
    ///
    /// `TaskNotFound` for a task that it does not have, `InvalidArgument` if two tasks then have one address.
    pub fn with_addresses<'t>(
        &self,
        addresses: impl IntoIterator<Item = (&'t ClusterTask, Address)>,
    ) -> Result<Cluster, Error> {
        let mut cluster = self.clone();
        for (task, address) in addresses {
            self.address(task)?;
            let tasks = cluster.jobs.entry(task.job.clone()).or_default();
            tasks.insert(task.task, address);
        }
        cluster.check()?;
        Ok(cluster)
    }

    /// Returns the files of certificates.
    pub fn tls(&self) -> Option<&TlsFiles> {
        self.tls.as_deref()
    }

    /// Returns how peers are looked at, where the file says so.
    pub fn security(&self) -> Option<&SecurityOptions> {
        self.security.as_deref()
    }

    /// Returns what each peer may do.
    ///
    /// # Errors
    ///
    /// As [`SecurityOptions::policy`].
    pub fn policy(&self) -> Result<Policy, Error> {
        let security = self.security.as_deref();
        let security = security.cloned().unwrap_or_default();
        security.policy(self.tls.is_some())
    }

    /// Returns the cluster as all tasks see it: without what concerns one task alone, its files and its policy.
    pub fn shared(&self) -> Cluster {
        Cluster {
            tls: None,
            security: None,
            ..self.clone()
        }
    }

    fn of_written(written: Written) -> Result<Cluster, Error> {
        let mut jobs = BTreeMap::new();
        for (job, tasks) in written.jobs {
            if !task::is_job(&job) {
                return Err(Error::invalid_argument(format!(
                    "jobs: expected names of letters, digits and '_' that begin with a letter, found '{job}'"
                )));
            }
            let mut numbered = BTreeMap::new();
            for (number, address) in tasks {
                let task = task::parse_number(&number).ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "jobs.{job}: expected numbers of tasks below 2^31 without leading zeros, found '{number}'"
                    ))
                })?;
                let address = Address::parse(&address).map_err(|error| {
                    Error::invalid_argument(format!("jobs.{job}.{number}: {}", error.message()))
                })?;
                numbered.insert(task, address);
            }
            jobs.insert(job, numbered);
        }
        let first = jobs
            .iter()
            .find_map(|(job, tasks)| Some((job, tasks.keys().next()?)));
        let first = first.map(|(job, task)| ClusterTask {
            job: job.clone(),
            task: *task,
        });
        let first = first.ok_or_else(no_tasks)?;
        let lead = match &written.lead {
            Some(lead) => named("lead", lead)?,
            None => first,
        };
        let mut cluster = Cluster {
            lead,
            jobs,
            groups: BTreeMap::new(),
            tls: written.tls,
            security: written.security,
        };
        for (name, members) in written.groups {
            let at = format!("groups.{name}");
            let members: Result<Vec<ClusterTask>, Error> =
                members.iter().map(|member| named(&at, member)).collect();
            cluster.groups.insert(name, members?);
        }
        cluster.check()?;
        cluster.policy()?;
        if !cluster.groups.contains_key("all") {
            cluster.add_group_of_all();
        }
        Ok(cluster)
    }

    fn add_group_of_all(&mut self) {
        let all = self.tasks().map(|(task, _)| task).collect();
        self.groups.insert("all".to_owned(), all);
    }

    /// Checks the invariant.
    fn check(&self) -> Result<(), Error> {
        let refused = |message: String| Err(Error::invalid_argument(message));
        match self.n_tasks() {
            0 => return Err(no_tasks()),
            n if n > MAX_TASKS => {
                return refused(format!("expected at most {MAX_TASKS} tasks, found {n}"));
            }
            _ => (),
        }
        let mut owners: BTreeMap<&Address, ClusterTask> = BTreeMap::new();
        for (task, address) in self.tasks() {
            if address.is_unknown() {
                continue;
            }
            if let Some(other) = owners.insert(address, task.clone()) {
                return refused(format!(
                    "expected an address for each task, found {address} for both {other} and {task}"
                ));
            }
        }
        if let Err(error) = self.address(&self.lead) {
            return refused(format!("lead: {}", error.message()));
        }
        for (name, members) in &self.groups {
            if members.is_empty() {
                return refused(format!("groups.{name}: expected members, found none"));
            }
            let mut seen = BTreeSet::new();
            for member in members {
                if let Err(error) = self.address(member) {
                    return refused(format!("groups.{name}: {}", error.message()));
                }
                if !seen.insert(member.to_string()) {
                    return refused(format!("groups.{name}: {member} is a member twice"));
                }
            }
        }
        Ok(())
    }
}

fn no_tasks() -> Error {
    Error::invalid_argument("jobs: expected a task or more, found none")
}

/// Parses the name of a task in an entry.
fn named(entry: &str, text: &str) -> Result<ClusterTask, Error> {
    let parsed = task::parse(text);
    parsed.map_err(|error| Error::invalid_argument(format!("{entry}: {}", error.message())))
}
