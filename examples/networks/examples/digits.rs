//! Trains a network on handwritten digits, and says how well it does.
//!
//! ```console
//! $ cargo run --release -p tfrt-networks --example digits -- --model cnn --seed 1 --threads 2
//! ```

use std::error;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use tfrt::{Error, MultiThreadedWorkQueue, Runtime};
use tfrt_networks::digits::{Model, Training, data};
use tfrt_tensor::btf;

/// Train a network on handwritten digits.
#[derive(Parser)]
struct Options {
    /// A perceptron, or a small convolutional network.
    #[arg(long, default_value = "mlp")]
    model: ModelOption,
    /// Which split of the data, which weights to begin with, which order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The threads that calculate.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// How often each image is seen.
    #[arg(long)]
    epochs: Option<usize>,
    /// Write what the perceptron has learnt, with images to try it on: `examples/mnist_inference.mlir`.
    #[arg(long)]
    save: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ModelOption {
    Mlp,
    Cnn,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough.
        Err(error)
            if error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn error::Error>> {
    let model = match options.model {
        ModelOption::Mlp => Model::Mlp,
        ModelOption::Cnn => Model::Cnn,
    };
    let queue = MultiThreadedWorkQueue::new(options.threads, 1)?;
    let runtime = Runtime::builder().queue(Arc::new(queue)).build();
    let (for_training, for_testing) = data::split(data::all()?, options.seed);
    let n_test = for_testing.len();
    let mut out = io::stdout();
    writeln!(
        out,
        "{} digits to learn from, {n_test} to be tested with",
        for_training.len()
    )?;
    let mut training = Training::new(model, options.seed, &runtime)?;
    let epochs = options.epochs.unwrap_or(model.epochs());
    let n_steps = Training::n_steps_of_epoch(&for_training);
    let (begun, mut bar) = (Instant::now(), Bar::new(epochs * n_steps));
    for epoch in 0..epochs {
        let done = epoch * n_steps;
        let loss = training.epoch(&for_training, epochs * n_steps, |step| {
            bar.show(done + step)
        })?;
        let percent = 100.0 * training.n_right(&for_testing)? as f64 / n_test as f64;
        bar.hide();
        writeln!(
            out,
            "epoch {:>3} of {epochs}  loss {loss:.4}  test accuracy {percent:.2} %",
            epoch + 1
        )?;
    }
    bar.hide();
    let n_right = training.n_right(&for_testing)?;
    let percent = 100.0 * n_right as f64 / n_test as f64;
    writeln!(out, "test accuracy {percent:.2} %: {n_right} of {n_test}")?;
    writeln!(out, "weights {:016x}", training.hash()?)?;
    eprintln!("{:.1} s", begun.elapsed().as_secs_f64());
    if let Some(path) = &options.save {
        let tensors = training.sample(&for_testing)?;
        let mut bytes = Vec::new();
        btf::write(&mut bytes, &tensors)?;
        let written = fs::write(path, bytes);
        written.map_err(|error| Error::unknown(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

/// Progress bar of the training, on a terminal.
struct Bar {
    n_steps: usize,
    n_cells_shown: Option<usize>,
    is_on_terminal: bool,
}

impl Bar {
    const N_CELLS: usize = 40;

    fn new(n_steps: usize) -> Bar {
        Bar {
            n_steps,
            n_cells_shown: None,
            is_on_terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, done: usize) {
        let n_cells = done * Self::N_CELLS / self.n_steps.max(1);
        if !self.is_on_terminal || self.n_cells_shown == Some(n_cells) {
            return;
        }
        self.n_cells_shown = Some(n_cells);
        let (full, empty) = (
            "#".repeat(n_cells),
            ".".repeat(Self::N_CELLS.saturating_sub(n_cells)),
        );
        // A terminal that is gone is no reason to stop.
        let _ = write!(
            io::stderr(),
            "\r[{full}{empty}] {:>3} %",
            100 * done / self.n_steps.max(1)
        );
    }

    /// Clears the line for others.
    fn hide(&mut self) {
        if self.n_cells_shown.take().is_some() {
            let _ = write!(io::stderr(), "\r{}\r", " ".repeat(Self::N_CELLS + 8));
        }
    }
}
