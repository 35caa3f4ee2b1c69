//! `tfrt cluster`: the tasks of a cluster, and which of them this process is.

use std::collections::BTreeMap;

use serde::Serialize;
use tfrt_dist::cluster::Cluster;
use tfrt_dist::source::{self, Found};

use super::{member, print_json, print_line};
use crate::console::Console;
use crate::failure::{ExitStatus, Failure};
use crate::options::{ClusterCommand, ClusterOptions, ClusterShowOptions};

mod check;

pub use check::probe;

/// Runs a command on clusters.
pub fn cluster(options: &ClusterOptions, console: &Console) -> Result<ExitStatus, Failure> {
    match &options.command {
        ClusterCommand::Show(options) => show(options),
        ClusterCommand::Check(options) => check::check(options, console),
    }
}

/// The document of `tfrt cluster show --json`.
#[derive(Serialize)]
struct Document<'f> {
    schema: &'static str,
    source: String,
    task: Option<String>,
    rank: Option<u32>,
    n_ranks: Option<u32>,
    local_rank: Option<u32>,
    rendezvous: Option<String>,
    variables: BTreeMap<&'static str, &'f str>,
    cluster: serde_json::Value,
}

fn show(options: &ClusterShowOptions) -> Result<ExitStatus, Failure> {
    let found = member::found(&options.cluster)?;
    match options.json {
        true => print_json(&document(&found))?,
        false => print_line(text(&found).trim_end())?,
    }
    Ok(ExitStatus::Fine)
}

/// Returns a file of the cluster, in whose comments is what else was found.
fn text(found: &Found) -> String {
    let mut text = format!("# from {}\n", found.source);
    if let Some(placement) = &found.placement {
        let local = placement
            .local_rank
            .map(|rank| format!(", {rank} on this machine"));
        text.push_str(&format!("# {placement}{}:", local.unwrap_or_default()));
        for (name, value) in &placement.variables {
            text.push_str(&format!(" {name}={value}"));
        }
        text.push('\n');
    }
    if let Some(task) = &found.task {
        text.push_str(&format!("# this task is {task}\n"));
    }
    let is_told_later = has_unknown(&found.cluster);
    if let (true, Some(placement)) = (is_told_later, &found.placement) {
        let unknown = source::unknown_address();
        text.push_str(&format!(
            "# the tasks meet at {}; {unknown} stands for an address that a task tells there\n",
            placement.rendezvous
        ));
    }
    text.push_str(&found.cluster.to_toml());
    text
}

fn has_unknown(cluster: &Cluster) -> bool {
    let unknown = source::unknown_address();
    cluster.tasks().any(|(_, address)| *address == unknown)
}

fn document(found: &Found) -> Document<'_> {
    let placement = found.placement.as_ref();
    let variables = placement.map(|placement| placement.variables.iter());
    let variables = variables.into_iter().flatten();
    let cluster = serde_json::from_str(&found.cluster.to_json());
    Document {
        schema: "tfrt.cluster/1",
        source: found.source.to_string(),
        task: found.task.as_ref().map(ToString::to_string),
        rank: placement.map(|placement| placement.rank),
        n_ranks: placement.map(|placement| placement.n_ranks),
        local_rank: placement.and_then(|placement| placement.local_rank),
        rendezvous: placement.map(|placement| placement.rendezvous.to_string()),
        variables: variables
            .map(|(name, value)| (*name, value.as_str()))
            .collect(),
        cluster: cluster.expect("what was written as JSON is JSON"),
    }
}
