//! Trains a perceptron on handwritten digits by Adam, with weights that are resource variables; stops, and goes on from
//! a file.
//!
//! ```console
//! $ cargo run --release -p tfrt-networks --example adam_digits -- --steps 150 --save half.safetensors
//! $ cargo run --release -p tfrt-networks --example adam_digits -- --steps 300 --load half.safetensors
//! $ cargo run --release -p tfrt-networks --example adam_digits -- --steps 300
//! ```
//!
//! The last two say the same of their weights: not a bit differs. So does Adam by a plugin:
//!
//! ```console
//! $ cargo build --release -p tfrt-example-plugin
//! $ cargo run --release -p tfrt-networks --example adam_digits -- --plugin target/release/libtfrt_example_plugin.so
//! ```

use std::error;
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Parser;
use tfrt::{MultiThreadedWorkQueue, Plugin, PluginOps, Runtime};
use tfrt_networks::digits::adam::{AdamPerceptron, Format};
use tfrt_networks::digits::data;

/// Train a network on handwritten digits by Adam.
#[derive(Parser)]
struct Options {
    /// Which split of the data, which weights to begin with, which images in which step.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The threads that calculate.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The number of steps after which to stop, with those of the file.
    #[arg(long, default_value_t = 300)]
    steps: usize,
    /// Go on from a file: `.npz`, or safetensors.
    #[arg(long)]
    load: Option<PathBuf>,
    /// Write weights and state to a file: `.npz`, or safetensors.
    #[arg(long)]
    save: Option<PathBuf>,
    /// Kernels of this library come before tfrt's own. It is code that runs in this process.
    #[arg(long, value_name = "LIBRARY")]
    plugin: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn error::Error>> {
    run(std::env::args().skip(1), &mut io::stdout())
}

/// Does what the arguments say, and writes how it went.
pub fn run(
    arguments: impl IntoIterator<Item = String>,
    out: &mut dyn Write,
) -> Result<(), Box<dyn error::Error>> {
    let words = iter::once("adam_digits".to_owned()).chain(arguments);
    let options = Options::try_parse_from(words).unwrap_or_else(|error| error.exit());
    let queue = MultiThreadedWorkQueue::new(options.threads, 1)?;
    let mut builder = Runtime::builder().queue(Arc::new(queue));
    if let Some(path) = &options.plugin {
        // SAFETY: whoever names the library trusts it.
        let plugin = unsafe { Plugin::load(path)? };
        let names: Vec<&str> = plugin.kernels().map(|kernel| kernel.op()).collect();
        writeln!(out, "kernels of the plugin: {}", names.join(", "))?;
        builder = builder.plugins(PluginOps::new([&plugin]));
    }
    let runtime = builder.build();
    let (for_training, for_testing) = data::split(data::all()?, options.seed);
    let mut perceptron = AdamPerceptron::new(options.seed, &runtime)?;
    if let Some(path) = &options.load {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        perceptron.load(&bytes, format_of(path))?;
        writeln!(out, "goes on after step {}", perceptron.n_steps_done())?;
    }
    let losses = perceptron.learn(&for_training, options.steps)?;
    if let (Some(first), Some(last)) = (losses.first(), losses.last()) {
        writeln!(out, "{} steps: loss {first:.4} to {last:.4}", losses.len())?;
    }
    let (n_right, n_test) = (perceptron.n_right(&for_testing)?, for_testing.len());
    let percent = 100.0 * n_right as f64 / n_test as f64;
    writeln!(out, "test accuracy {percent:.2} %: {n_right} of {n_test}")?;
    writeln!(out, "weights {:016x}", perceptron.hash()?)?;
    if let Some(path) = &options.save {
        let bytes = perceptron.save(format_of(path))?;
        std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn format_of(path: &Path) -> Format {
    match path.extension().is_some_and(|extension| extension == "npz") {
        true => Format::Npz,
        false => Format::Safetensors,
    }
}
