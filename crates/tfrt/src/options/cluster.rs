//! Options about clusters.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use tfrt_run::QueueOption;

use super::{parse_bytes, parse_duration};

/// Look at clusters: the tasks that an engine such as Slurm has started, or that a file names
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srun -N2 -n2 tfrt cluster show             which task is this, of how many, and who says so?
  mpirun -np 2 -x TFRT_RENDEZVOUS=127.0.0.1:7000 tfrt cluster show
  tfrt cluster show --cluster cluster.toml   is the file as it should be?
  srun -N2 -n2 tfrt cluster check            does each task reach each other, and how fast?")]
pub struct ClusterOptions {
    #[command(subcommand)]
    pub command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    Show(ClusterShowOptions),
    Check(ClusterCheckOptions),
}

/// Print what was found of a cluster, from which variables, and the cluster as TOML
#[derive(Debug, Args)]
#[command(after_help = "\
`auto` looks at TFRT_CLUSTER (JSON), and at the variables of torchrun, Slurm, Open MPI and Kubernetes. \
Sources that say different things are an error.")]
pub struct ClusterShowOptions {
    /// Where the cluster is from: `auto`, `torchrun`, `slurm`, `openmpi`, `kubernetes`, or a file, TOML or .json
    #[arg(long, value_name = "SOURCE", default_value = "auto")]
    pub cluster: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Connect each pair of tasks, and print round-trip times and bandwidths
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srun -N2 -n2 tfrt cluster check               every task the same command; the lead prints
  tfrt cluster check --cluster cluster.toml     of a file, where a `tfrt worker` waits as each other task
  tfrt cluster check --cluster cluster.toml --join-timeout 2s    what is missing, soon")]
pub struct ClusterCheckOptions {
    #[command(flatten)]
    pub member: MemberOptions,

    /// Bytes that are sent from each task to each other
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = parse_bytes)]
    pub bytes: usize,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Serve a cluster: run what the lead's program asks of this task, until the lead ends
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tfrt worker --cluster cluster.toml --task /job:worker/task:1
  tfrt worker --listen 127.0.0.1:0 --address-file w1    at any port, and who leads says which task this is
  srun -N2 -n2 tfrt run --cluster auto program.mlir     under an engine `tfrt run` does this on all tasks but one

It ends with status 0 when the lead says bye; with 1 if tasks disagree, or the lead was not met; with 3 if the
lead is lost; with 4 if it is interrupted.")]
pub struct WorkerOptions {
    #[command(flatten)]
    pub member: MemberOptions,

    /// The work queue that runs the kernels: `single`, or `multi[:THREADS[:BLOCKING]]`
    #[arg(long, value_name = "QUEUE", default_value = "multi")]
    pub queue: QueueOption,

    /// Write what ran when to a file that https://ui.perfetto.dev opens; {job} and {task} stand for the task
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}

/// How a process joins the tasks of a cluster
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Many tasks")]
pub struct MemberOptions {
    /// Join the tasks of a cluster: `auto`, `torchrun`, `slurm`, `openmpi`, `kubernetes`, or a file, TOML or .json
    #[arg(long, value_name = "SOURCE")]
    pub cluster: Option<String>,

    /// Which of the tasks this one is, where no engine says so: `/job:worker/task:1`
    #[arg(long, value_name = "NAME")]
    pub task: Option<String>,

    /// Where to listen, if not at the address by which others know this task: host:port, unix:/path
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,

    /// Write the address at which this task listens to a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub address_file: Option<PathBuf>,

    /// How long to wait for the other tasks [default: 60s with --cluster]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub join_timeout: Option<Duration>,

    /// A file with the secret that all tasks share [default: the variable TFRT_CLUSTER_SECRET, or what the cluster's
    /// file says]; without one, and without certificates, only tasks of this machine are let in
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub secret_file: Option<PathBuf>,

    /// Let the other tasks' programs have all kernels, and no bounds of memory and time
    #[arg(long)]
    pub trust_peers: bool,
}
