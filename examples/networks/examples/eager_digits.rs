//! Trains a perceptron on handwritten digits, one operation at a time, and makes a program of what it has learnt.
//!
//! ```console
//! $ cargo run --release -p tfrt-networks --example eager_digits -- --save digits.bef
//! $ tfrt run digits.bef --input images=images.npy
//! ```

use std::error;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use tfrt::{MultiThreadedWorkQueue, Runtime};
use tfrt_networks::digits::data;
use tfrt_networks::digits::eager::Perceptron;

/// Train a network on handwritten digits, one operation at a time.
#[derive(Parser)]
struct Options {
    /// Which split of the data, which weights to begin with, which order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The threads that calculate.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// How often each image is seen.
    #[arg(long, default_value_t = 60)]
    epochs: usize,
    /// Write a program that finds the numbers of each class for 100 images.
    #[arg(long)]
    save: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let options = Options::parse();
    let queue = MultiThreadedWorkQueue::new(options.threads, 1)?;
    let runtime = Runtime::builder().queue(Arc::new(queue)).build();
    let (for_training, for_testing) = data::split(data::all()?, options.seed);
    let n_test = for_testing.len();
    let mut perceptron = Perceptron::new(options.seed, &runtime)?;
    let n_steps = options.epochs * (for_training.len() / tfrt_networks::digits::BATCH);
    for epoch in 0..options.epochs {
        let loss = perceptron.epoch(&for_training, n_steps)?;
        let percent = 100.0 * perceptron.n_right(&for_testing)? as f64 / n_test as f64;
        let (epoch, epochs) = (epoch + 1, options.epochs);
        println!("epoch {epoch:>3} of {epochs}  loss {loss:.4}  test accuracy {percent:.2} %");
    }
    if let Some(path) = &options.save {
        let eager = perceptron.eager();
        let images = eager.zeros::<f32>(&[100, data::N_PIXELS])?;
        let recorded = eager.record(&[("images", &images)], |_, inputs| {
            Ok(vec![perceptron.logits(&inputs[0])?])
        })?;
        recorded.save(path)?;
    }
    Ok(())
}
