//! Trains a perceptron on handwritten digits on several ranks, which are threads, with gradients that are reduced among
//! them.
//!
//! ```console
//! $ cargo run --release -p tfrt-networks --example parallel_digits -- --ranks 1,2,3,4,8
//! ```
//!
//! All lines say the same of the weights: not a bit differs.

use std::error;

use clap::Parser;
use tfrt_networks::digits::parallel;

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
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let options = Options::parse();
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
