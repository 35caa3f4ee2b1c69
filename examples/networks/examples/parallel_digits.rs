//! Trains a perceptron on handwritten digits on several ranks, which are threads, or processes that an engine starts, with
//! gradients that are reduced among them.
//!
//! ```console
//! $ cargo run --release -p tfrt-networks --example parallel_digits -- --ranks 1,2,3,4,8
//! $ srun -n4 target/release/examples/parallel_digits --cluster auto --state digits.safetensors
//! ```
//!
//! All lines say the same of the weights: not a bit differs.

use std::error;
use std::path::PathBuf;

use clap::Parser;
use tfrt_networks::digits::parallel::{self, Training};

/// Train a network on handwritten digits on several ranks.
#[derive(Parser)]
struct Options {
    /// Which split of the data, which weights to begin with, which images in which step.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Numbers of ranks, of which each is tried.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    ranks: Vec<usize>,
    /// The number of steps.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// Join the tasks of a cluster instead, each of which is a rank: `auto`, or a file.
    #[arg(long, value_name = "SOURCE")]
    cluster: Option<String>,
    /// A file that all ranks see: what was learnt is saved there, and where it is there the training goes on from it.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    state: Option<PathBuf>,
    /// How often it is saved, in steps.
    #[arg(long, value_name = "STEPS", default_value_t = 50)]
    save_every: usize,
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let options = Options::parse();
    if let Some(cluster) = &options.cluster {
        let training = Training {
            n_steps: options.steps,
            seed: options.seed,
            state: options.state,
            save_every: options.save_every.max(1),
        };
        // Its words, and not its parts, which `main` would print.
        let trained = parallel::processes::train(cluster, &training);
        let (rank, n_ranks, learnt) = trained.map_err(|error| error.message().to_owned())?;
        let (n_right, hash) = (learnt.n_right, learnt.hash);
        println!(
            "rank {rank} of {n_ranks}: {n_right} of the test images right, weights {hash:016x}"
        );
        return Ok(());
    }
    for n_ranks in options.ranks {
        let learnt = parallel::train(n_ranks, options.steps, options.seed)?;
        let Some(first) = learnt.first() else {
            continue;
        };
        let is_same = learnt.iter().all(|rank| rank == first);
        println!(
            "{n_ranks} ranks: loss {:.4}, {} of the test images right, weights {:016x}{}",
            first.losses.last().unwrap_or(&f32::NAN),
            first.n_right,
            first.hash,
            if is_same {
                ""
            } else {
                ", BUT NOT ON ALL RANKS"
            }
        );
    }
    Ok(())
}
