//! [`Records`]: results of checks and measurements, a line each on standard output and in a file.
//!
//! Such a file has ten columns between tabs, in the order of [`COLUMNS`]; `gpu_check report` makes one JSON and one table of
//! all that lie in a folder.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::exit;
use std::sync::Arc;

use tfrt_gpu::GpuResult;
use tfrt_gpu::driver::Driver;
use tfrt_gpu::driver::cuda::Cuda;
use tfrt_gpu::driver::sim::{Sim, SimOptions};

/// The columns of a record: `kind` is `check` or `measurement`, `result` a verdict or a number, `low` and `high` the range
/// of rounds of a measurement.
pub const COLUMNS: [&str; 10] = [
    "kind", "name", "result", "unit", "low", "high", "seed", "gpu", "driver", "detail",
];

/// The driver that a program runs on, and where its results go.
pub struct Records {
    pub driver: Arc<dyn Driver>,
    /// Whether the driver is simulated: sizes are small then, and times mean nothing.
    pub is_simulated: bool,
    /// The words of the command line that are left.
    pub words: Vec<String>,
    pub n_failed: u32,
    pub n_passed: u32,
    gpu: String,
    version: String,
    file: Option<File>,
}

impl Records {
    /// Opens the driver that the command line names: NVIDIA's, or with `--sim` a simulated one. Records are added to the file
    /// behind `--records`. The process ends with 3 where there is no GPU, with 2 where a file can't be written.
    pub fn open(words: impl Iterator<Item = String>) -> Records {
        let (mut is_simulated, mut path, mut left) = (false, None, Vec::new());
        let mut words = words;
        while let Some(word) = words.next() {
            match &*word {
                "--sim" => is_simulated = true,
                "--records" => path = words.next(),
                _ => left.push(word),
            }
        }
        let opened: GpuResult<(Arc<dyn Driver>, String)> = match is_simulated {
            true => {
                let sim: Arc<dyn Driver> = Arc::new(Sim::new(SimOptions::default()));
                Ok((sim, "simulated".to_owned()))
            }
            false => Cuda::open().map(|cuda| {
                let library = cuda.library().to_owned();
                let driver: Arc<dyn Driver> = Arc::new(cuda);
                (driver, library)
            }),
        };
        let described = opened.and_then(|(driver, library)| {
            let gpu = driver.properties(driver.device(0)?)?;
            let version = format!("{library}, CUDA {}", driver.version()?);
            Ok((driver, gpu, version))
        });
        let (driver, gpu, version) = match described {
            Ok(described) => described,
            Err(error) => {
                println!("no GPU to check: {error}");
                exit(3);
            }
        };
        println!("{version}: {gpu:?}");
        let file = path.map(|path| {
            let opened = OpenOptions::new().append(true).create(true).open(&path);
            opened.unwrap_or_else(|error| {
                println!("{path}: {error}");
                exit(2);
            })
        });
        Records {
            driver,
            is_simulated,
            words: left,
            n_failed: 0,
            n_passed: 0,
            gpu: gpu.name,
            version,
            file,
        }
    }

    /// Records whether a check has passed.
    pub fn check(&mut self, name: &str, passed: bool, seed: Option<u64>, detail: &str) {
        let verdict = if passed { "passed" } else { "FAILED" };
        self.n_passed += u32::from(passed);
        self.n_failed += u32::from(!passed);
        match detail.is_empty() {
            true => println!("{verdict}: {name}"),
            false => println!("{verdict}: {name}: {detail}"),
        }
        let seed = seed.map(|seed| seed.to_string()).unwrap_or_default();
        self.write(&["check", name, verdict, "", "", "", &seed], detail);
    }

    /// Records the median of rounds of a measurement, after one that is not counted.
    pub fn measure(&mut self, name: &str, unit: &str, one: &mut dyn FnMut() -> f64) {
        one();
        let n_rounds = if self.is_simulated { 3 } else { 15 };
        let mut all: Vec<f64> = (0..n_rounds).map(|_| one()).collect();
        all.sort_by(f64::total_cmp);
        let at = |part: usize| format!("{:.3}", all[(n_rounds - 1) * part / 14]);
        let (median, low, high) = (at(7), at(2), at(12));
        println!("{name}: {median} {unit} ({low} to {high})");
        let words = ["measurement", name, &median, unit, &low, &high, ""];
        self.write(&words, "");
    }

    fn write(&mut self, words: &[&str; 7], detail: &str) {
        let Some(file) = &mut self.file else {
            return;
        };
        let all = words
            .iter()
            .copied()
            .chain([&*self.gpu, &*self.version, detail]);
        let clean = |word: &str| word.replace(['\t', '\n', '\r'], " ");
        let line: Vec<String> = all.map(clean).collect();
        if let Err(error) = writeln!(file, "{}", line.join("\t")) {
            println!("a record is lost: {error}");
            exit(2);
        }
    }
}
