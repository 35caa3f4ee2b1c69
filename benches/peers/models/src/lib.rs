//! Shared code of peers: the inputs of a model as files, and answers to lines.

use std::error::Error;
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An input of a model.
pub struct Input {
    pub name: String,
    pub extents: Vec<usize>,
    pub elements: Elements,
}

/// The elements of an input, in row-major order.
pub enum Elements {
    F32(Vec<f32>),
    I64(Vec<i64>),
}

/// Reads the inputs in a folder: of each a line with name, type, extents and file.
pub fn inputs(folder: &Path) -> Result<Vec<Input>, Box<dyn Error>> {
    let list = fs::read_to_string(folder.join("inputs.txt"))?;
    list.lines().map(|line| input(folder, line)).collect()
}

fn input(folder: &Path, line: &str) -> Result<Input, Box<dyn Error>> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, kind, extents, file] = words[..] else {
        return Err(format!("expected four words, found '{line}'").into());
    };
    let extents = extents
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let bytes = fs::read(folder.join(file))?;
    let elements = match kind {
        "float32" => {
            let (floats, _) = bytes.as_chunks::<4>();
            Elements::F32(floats.iter().map(|b| f32::from_le_bytes(*b)).collect())
        }
        "int64" => {
            let (integers, _) = bytes.as_chunks::<8>();
            Elements::I64(integers.iter().map(|b| i64::from_le_bytes(*b)).collect())
        }
        other => return Err(format!("expected float32 or int64, found {other}").into()),
    };
    Ok(Input {
        name: name.to_owned(),
        extents,
        elements,
    })
}

/// The arguments of a peer.
pub struct Arguments {
    pub model: PathBuf,
    pub inputs: PathBuf,
    pub n_threads: usize,
}

/// Reads the command line: the model, the folder of its inputs, how many threads may be used.
pub fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [model, inputs, n_threads] = &words[..] else {
        return Err("expected MODEL INPUTS THREADS".into());
    };
    Ok(Arguments {
        model: model.into(),
        inputs: inputs.into(),
        n_threads: n_threads.parse()?,
    })
}

/// Greets, then answers for each line on the standard input, a number of times, with the nanoseconds that took; for
/// `results` with what came of a call, which is the first of its results.
pub fn answer(
    greeting: &str,
    mut call: impl FnMut() -> Result<Vec<f32>, Box<dyn Error>>,
    mut time: impl FnMut(usize) -> Result<Duration, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    call()?;
    println!("{greeting}");
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            "results" => {
                let numbers: Vec<String> = call()?.iter().map(f32::to_string).collect();
                println!("{}", numbers.join(" "));
            }
            n_times => println!("{}", time(n_times.parse()?)?.as_nanos()),
        }
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Returns how long it takes to do something so many times.
pub fn timed<T, E>(n_times: usize, mut work: impl FnMut() -> Result<T, E>) -> Result<Duration, E> {
    let start = Instant::now();
    for _ in 0..n_times {
        std::hint::black_box(work()?);
    }
    Ok(start.elapsed())
}
