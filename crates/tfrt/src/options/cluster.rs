//! Options about clusters.

use clap::{Args, Subcommand};

/// Look at clusters: the tasks that an engine such as Slurm has started, or that a file names
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  srun -N2 -n2 tfrt cluster show             which task is this, of how many, and who says so?
  mpirun -np 2 -x TFRT_RENDEZVOUS=127.0.0.1:7000 tfrt cluster show
  tfrt cluster show --cluster cluster.toml   is the file as it should be?")]
pub struct ClusterOptions {
    #[command(subcommand)]
    pub command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    Show(ClusterShowOptions),
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
