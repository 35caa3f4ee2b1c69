//! Writes ResNet-50 as a program, and its weights.
//!
//! ```console
//! $ cargo run --release -p tfrt-networks --example resnet50 -- --batch 8 --form fused target/resnet50
//! $ cargo run --release -- run target/resnet50/resnet50.mlir
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use clap::Parser;
use tfrt::Runtime;
use tfrt_networks::resnet::{Form, ResNet};
use tfrt_tensor::btf;

/// Write ResNet-50 as a program, and its weights.
#[derive(Parser)]
struct Options {
    /// The number of images.
    #[arg(long, default_value = "1")]
    batch: NonZeroUsize,
    /// The height and width of the images.
    #[arg(long, default_value = "224")]
    image: NonZeroUsize,
    /// A kernel for each step; one for each convolution with what follows it; or that by packed weights.
    #[arg(long, default_value = "plain")]
    form: FormOption,
    /// Which weights are drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder for `resnet50.mlir` and `resnet50.btf`.
    folder: PathBuf,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FormOption {
    Plain,
    Fused,
    Packed,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let network = ResNet {
        batch: options.batch.get(),
        image: options.image.get(),
        form: match options.form {
            FormOption::Plain => Form::Plain,
            FormOption::Fused => Form::Fused,
            FormOption::Packed => Form::Packed,
        },
        ..ResNet::FIFTY
    };
    match write(&network, options.seed, &options.folder) {
        Ok(program) => {
            println!("{}", program.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}: {error}", options.folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Writes program and weights; returns where the program is.
fn write(network: &ResNet, seed: u64, folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let weights = absolute(folder.join("resnet50.btf"))?;
    let runtime = Runtime::new();
    let failed = |error: tfrt::Error| io::Error::other(error.to_string());
    let tensors = network.tensors(seed, runtime.host().allocator());
    let tensors = tensors.map_err(failed)?;
    let mut file = BufWriter::new(File::create(&weights)?);
    btf::write(&mut file, &tensors).map_err(failed)?;
    file.flush()?;
    let path = weights.to_str();
    let path = path.ok_or_else(|| io::Error::other("the folder's name is no text"))?;
    let program = folder.join("resnet50.mlir");
    fs::write(&program, network.program(path))?;
    Ok(program)
}
