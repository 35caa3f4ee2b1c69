//! [`Policy`]: what each peer of a task may do, and how much; [`SecurityOptions`]: how a file says so; [`Access`]: how
//! peers prove who they are.
//!
//! A task runs programs that others send, so that it matters who they are. Names of tasks are proved by certificates
//! alone: a rule for a name holds for peers with a certificate of that name, and who has none has no role by it.
//!
//! | Role | May |
//! | --- | --- |
//! | `execute` | run registered functions and operations, delete objects |
//! | `register` | register functions |
//! | `data` | send values, take part in collectives |
//! | `trusted` | register programs that nobody limits: with kernels for tests and GPUs, without bounds of memory and time |
//!
//! Any role is enough to ask for devices, and to begin, keep and end contexts.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tfrt_async::{Error, ErrorCode};

use crate::ids::Incarnation;
use crate::message::Request;
use crate::objects::MAX_OBJECTS;
use crate::transport::Caller;

mod access;

pub use access::Access;
pub use tfrt_wire::proof::Secret;

/// A permission of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs registered functions, and operations.
    Execute,
    /// Registers functions.
    Register,
    /// Sends values, and takes part in collectives.
    Data,
    /// Registers programs without limits.
    Trusted,
}

/// Whether the programs and requests of a peer have limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// They have none.
    Trusted,
    /// They have those of strangers.
    Untrusted,
}

/// The roles of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

/// The bounds of one peer, each by itself, so that what one takes is not what another lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// The most requests and values that are not answered yet.
    pub requests: usize,
    /// The most bytes of these.
    pub request_bytes: usize,
    /// The most bytes of values, in one context, that nobody has asked for.
    pub waiting_bytes: usize,
    /// The most objects in one context that it has named, awaited ones included.
    pub objects: usize,
    /// The most functions that it registers with one context.
    pub functions: usize,
    /// The most bytes of their text.
    pub program_bytes: usize,
    /// The most memory of one of its executions, if it is not trusted.
    pub memory: usize,
    /// The longest time of one of its executions, if it is not trusted.
    pub time: Duration,
}

/// The permissions and bounds of peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The roles of peers whose names have not been proved, or for which there are no rules.
    anybody: Roles,
    rules: Vec<(String, Roles)>,
    quotas: Quotas,
}

/// A peer as it is counted: by its certificate, or else by the start of its process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerKey(String);

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Execute, Role::Register, Role::Data, Role::Trusted];

    /// Returns the name, as files have it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Execute => "execute",
            Role::Register => "register",
            Role::Data => "data",
            Role::Trusted => "trusted",
        }
    }

    /// Returns the role that a request needs; none if any will do.
    fn of(request: &Request) -> Option<Role> {
        match request {
            Request::RegisterFunction { .. } => Some(Role::Register),
            Request::RemoteExecute { .. }
            | Request::RemoteExecuteOp(_)
            | Request::DeleteRemoteObjects { .. } => Some(Role::Execute),
            _ => None,
        }
    }
}

impl Roles {
    /// Returns whether a role is among them.
    pub fn has(self, role: Role) -> bool {
        self.0 & 1 << role as u8 != 0
    }

    fn with(self, roles: &[Role]) -> Roles {
        let all = roles
            .iter()
            .fold(self.0, |all, role| all | 1 << *role as u8);
        Roles(all)
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Role::ALL.into_iter().filter(|role| self.has(*role));
        let names: Vec<&str> = names.map(Role::name).collect();
        match names.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&names.join(", ")),
        }
    }
}

impl Default for Quotas {
    fn default() -> Quotas {
        Quotas {
            requests: 16 << 10,
            request_bytes: 1 << 30,
            waiting_bytes: 1 << 30,
            objects: MAX_OBJECTS / 4,
            functions: 1024,
            program_bytes: 64 << 20,
            memory: 256 << 20,
            time: Duration::from_secs(10),
        }
    }
}

impl Default for Policy {
    /// Returns a policy by which every peer may execute, register and send, and is not trusted.
    fn default() -> Policy {
        Policy {
            anybody: Roles::default().with(&[Role::Execute, Role::Register, Role::Data]),
            rules: Vec::new(),
            quotas: Quotas::default(),
        }
    }
}

impl Policy {
    /// Returns a policy by which every peer may do all: for tasks of one program that somebody else has let in.
    pub fn trusting() -> Policy {
        Policy {
            anybody: Roles::default().with(&Role::ALL),
            ..Policy::default()
        }
    }

    /// Gives roles to peers whose certificates have a name of a pattern, in which `*` stands for any text:
    /// `/job:worker/task:*`. With the first rule nobody else has any.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if no name of a task can be of the pattern.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_dist::security::{Policy, Role};
    ///
    /// let policy = Policy::default()
    ///     .allow("/job:worker/task:*", &[Role::Data])?
    ///     .allow("/job:trainer/task:0", &[Role::Execute, Role::Register, Role::Data])?;
    /// # Ok::<(), tfrt_async::Error>(())
    /// ```
    pub fn allow(mut self, pattern: &str, roles: &[Role]) -> Result<Policy, Error> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "/:_*".contains(c);
        let is_anything = pattern.starts_with('*');
        if !(pattern.starts_with("/job:") || is_anything) || !pattern.chars().all(fits) {
            return Err(Error::invalid_argument(format!(
                "expected a pattern such as /job:worker/task:*, found '{}'",
                pattern.escape_debug()
            )));
        }
        self.anybody = Roles::default();
        let roles = Roles::default().with(roles);
        self.rules.push((pattern.to_owned(), roles));
        Ok(self)
    }

    /// Sets the bounds of each peer.
    pub fn with_quotas(mut self, quotas: Quotas) -> Policy {
        self.quotas = quotas;
        self
    }

    /// Returns the bounds of each peer.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns the roles of a peer: all that the rules for its name give.
    pub fn roles(&self, peer: &Caller) -> Roles {
        let Some(task) = peer.task.as_ref().map(ToString::to_string) else {
            return self.anybody;
        };
        let rules = self.rules.iter();
        let matching = rules.filter(|(pattern, _)| matches(pattern, &task));
        matching.fold(self.anybody, |all, (_, roles)| Roles(all.0 | roles.0))
    }

    /// Returns whether the programs of a peer have limits.
    pub fn trust(&self, peer: &Caller) -> Trust {
        match self.roles(peer).has(Role::Trusted) {
            true => Trust::Trusted,
            false => Trust::Untrusted,
        }
    }

    /// Checks that a peer may ask for something.
    pub(crate) fn check(&self, peer: &Caller, request: &Request) -> Result<(), Error> {
        self.need(peer, Role::of(request), request.name())
    }

    /// Checks that a peer may send values.
    pub(crate) fn check_value(&self, peer: &Caller) -> Result<(), Error> {
        self.need(peer, Some(Role::Data), "SendData")
    }

    fn need(&self, peer: &Caller, role: Option<Role>, asked: &str) -> Result<(), Error> {
        let roles = self.roles(peer);
        let wanted = match role {
            Some(role) if roles.has(role) => return Ok(()),
            None if roles != Roles::default() => return Ok(()),
            Some(role) => format!("the role '{}'", role.name()),
            None => "a role".to_owned(),
        };
        let peer = match &peer.task {
            Some(task) => task.to_string(),
            None => format!("the task at {}, which has no certificate,", peer.address),
        };
        Err(Error::new(
            ErrorCode::PermissionDenied,
            format!("{peer} may not ask for {asked}: expected {wanted}, found {roles}"),
        ))
    }
}

impl PeerKey {
    /// Returns the key of who has sent something.
    pub fn of(peer: &Caller) -> PeerKey {
        match &peer.task {
            Some(task) => PeerKey(task.to_string()),
            None => PeerKey::of_process(peer.incarnation),
        }
    }

    /// Returns the key of a process.
    pub fn of_process(incarnation: Incarnation) -> PeerKey {
        PeerKey(incarnation.to_string())
    }
}

/// Returns whether a text is of a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    // The first place at which a part fits leaves most for the others.
    for part in parts {
        let Some((_, after)) = text.split_once(part) else {
            return false;
        };
        text = after;
    }
    text.ends_with(last)
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The section `[security]` of the file of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecurityOptions {
    /// The file of the secret that all tasks share, where there are no certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether all who are let in are trusted; without roles, which say so of some.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trusted: bool,
    /// The roles of tasks, by pattern of their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, Vec<Role>>,
    /// The bounds of each peer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quotas: BTreeMap<String, u64>,
}

impl SecurityOptions {
    /// Returns the policy that the section describes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the entry that is wrong, or if there are roles and no certificates to know names by.
    pub fn policy(&self, has_certificates: bool) -> Result<Policy, Error> {
        if !self.roles.is_empty() && !has_certificates {
            return Err(Error::invalid_argument(
                "security.roles: expected certificates, [tls], by which names are proved, found none",
            ));
        }
        if !self.roles.is_empty() && self.trusted {
            return Err(Error::invalid_argument(
                "security: expected `trusted`, of all who are let in, or `roles`, found both",
            ));
        }
        let mut policy = match self.trusted {
            true => Policy::trusting(),
            false => Policy::default(),
        };
        for (pattern, roles) in &self.roles {
            let allowed = policy.allow(pattern, roles);
            policy = allowed.map_err(|error| {
                Error::invalid_argument(format!("security.roles: {}", error.message()))
            })?;
        }
        let mut quotas = Quotas::default();
        for (name, value) in &self.quotas {
            let size = usize::try_from(*value).unwrap_or(usize::MAX);
            let quota = match name.as_str() {
                "requests" => &mut quotas.requests,
                "request_bytes" => &mut quotas.request_bytes,
                "waiting_bytes" => &mut quotas.waiting_bytes,
                "objects" => &mut quotas.objects,
                "functions" => &mut quotas.functions,
                "program_bytes" => &mut quotas.program_bytes,
                "memory" => &mut quotas.memory,
                "seconds" => {
                    quotas.time = Duration::from_secs(*value);
                    continue;
                }
                other => {
                    return Err(Error::invalid_argument(format!(
                        "security.quotas: expected requests, request_bytes, waiting_bytes, objects, functions, \
                         program_bytes, memory or seconds, found '{}'",
                        other.escape_debug()
                    )));
                }
            };
            *quota = size;
        }
        Ok(policy.with_quotas(quotas))
    }
}

#[cfg(test)]
mod tests {
    use tfrt_async::ClusterTask;

    use super::*;
    use crate::cluster::Address;

    fn caller(task: Option<(&str, u32)>) -> Caller {
        Caller {
            address: Address::parse("10.0.0.1:7000").unwrap(),
            incarnation: Incarnation(1),
            task: task.map(|(job, task)| ClusterTask {
                job: job.to_owned(),
                task,
            }),
        }
    }

    #[test]
    fn patterns_stand_for_texts() {
        for (pattern, text, expected) in [
            ("/job:w/task:1", "/job:w/task:1", true),
            ("/job:w/task:1", "/job:w/task:11", false),
            ("/job:w/task:*", "/job:w/task:11", true),
            ("/job:w/task:*", "/job:wx/task:11", false),
            ("/job:*/task:0", "/job:a/task:0", true),
            ("/job:*/task:0", "/job:a/task:10", false),
            ("*", "/job:a/task:10", true),
            ("/job:*a*/task:*", "/job:bab/task:1", true),
            ("/job:*a*/task:*", "/job:bbb/task:1", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn roles_are_those_of_all_rules_that_fit() {
        let policy = Policy::default()
            .allow("/job:w/task:*", &[Role::Data])
            .unwrap()
            .allow("/job:*/task:0", &[Role::Execute, Role::Trusted])
            .unwrap();
        let roles = |task| policy.roles(&caller(task)).to_string();
        assert_eq!(roles(Some(("w", 0))), "execute, data, trusted");
        assert_eq!(roles(Some(("w", 1))), "data");
        assert_eq!(roles(Some(("x", 1))), "none");
        assert_eq!(roles(None), "none");
        let roles = Policy::default().roles(&caller(None));
        assert_eq!(roles.to_string(), "execute, register, data");
    }

    #[test]
    fn a_refusal_names_peer_role_and_what_was_asked() {
        let policy = Policy::default()
            .allow("/job:w/task:*", &[Role::Data])
            .unwrap();
        let register = Request::RegisterFunction {
            context: crate::ids::ContextId(1),
            name: "f".to_owned(),
            program: String::new(),
            need_compilation: false,
        };
        let error = policy.check(&caller(Some(("w", 1))), &register);
        assert_eq!(
            error.unwrap_err().message(),
            "/job:w/task:1 may not ask for RegisterFunction: expected the role 'register', found data"
        );
        let error = policy.check(&caller(None), &Request::GetDevices);
        assert_eq!(
            error.unwrap_err().message(),
            "the task at 10.0.0.1:7000, which has no certificate, may not ask for GetDevices: expected a role, found none"
        );
        policy
            .check(&caller(Some(("w", 1))), &Request::GetDevices)
            .unwrap();
        policy.check_value(&caller(Some(("w", 1)))).unwrap();
        assert!(policy.check_value(&caller(None)).is_err());
    }

    #[test]
    fn a_pattern_that_fits_no_task_is_refused() {
        for pattern in ["", "job:w", "/job:w/task: 1", "/task:1"] {
            let error = Policy::default().allow(pattern, &[]).unwrap_err();
            assert!(
                error.message().starts_with("expected a pattern"),
                "{pattern}"
            );
        }
    }
}
