//! The memory of a model, measured: when it is open, during a first call and a second; and what a call makes, with the
//! least that it could take (`plan`).
//!
//! Sizes of what a model computes depend on what it is given, so that there is no telling without a
//! call. What is counted is what the host's allocator hands out: tensors and frames, but not elements
//! that lie in the file.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tfrt::asynchronous::SystemAllocator;
use tfrt::host::memory::{Profile, ProfiledAllocator};
use tfrt::input::Input;
use tfrt::ir::visible;
use tfrt::{Model, OpenOptions, Runtime};

mod observe;
mod plan;

use plan::MemoryPlan;

use super::weights::size;
use crate::commands::model_inputs;
use crate::failure::Failure;
use crate::options::InspectOptions;

/// The measured memory of a model.
#[derive(Serialize)]
pub struct Memory {
    schema: &'static str,
    file: String,
    inputs: Vec<String>,
    /// The bytes of the program, weights among them.
    file_bytes: u64,
    is_mapped: bool,
    stages: Vec<Stage>,
    /// A plan of the memory of one call.
    plan: MemoryPlan,
}

/// A phase of a model's life, such as opening it or the first call.
#[derive(Serialize)]
struct Stage {
    name: &'static str,
    /// The bytes that are held at the end.
    held_bytes: u64,
    held_blocks: u64,
    /// The most bytes that were held at once until then.
    most_bytes: u64,
    /// The number of allocations during the phase.
    allocations: u64,
    /// The duration.
    elapsed_ms: f64,
    /// The growth of private memory that the process has written to: with its stacks and tables, and not only what was
    /// asked of the allocator.
    private_bytes: Option<u64>,
    /// The growth of memory that is pages of files: pages that the system keeps in any case, can drop, and lends to
    /// whoever maps the same file.
    mapped_bytes: Option<u64>,
}

impl Memory {
    /// Opens the model that was read, and calls it twice. Returns the files of its inputs, too.
    pub fn measure(
        options: &InspectOptions,
        input: &Input,
        opening: &OpenOptions,
    ) -> Result<(Memory, Vec<PathBuf>), Failure> {
        let system = Arc::new(SystemAllocator::new());
        let allocator = Arc::new(ProfiledAllocator::new(system));
        let runtime = Runtime::builder().allocator(allocator.clone()).build();
        let resident = ResidentMemory::now();
        let mut began = Instant::now();
        let program = runtime.load_with(input, opening)?;
        let file = program.as_host_program().file();
        let file_bytes = file.buffer().as_bytes().len() as u64;
        let mut stages = Vec::new();
        let mut before = allocator.profile();
        let mut stage = |name| {
            let elapsed = began.elapsed();
            let now = allocator.profile();
            let grown = ResidentMemory::now().zip(resident);
            let grown = grown.map(|(now, then)| now.since(then));
            stages.push(Stage {
                elapsed_ms: elapsed.as_secs_f64() * 1e3,
                private_bytes: grown.map(|grown| grown.private_bytes),
                mapped_bytes: grown.map(|grown| grown.mapped_bytes),
                ..Stage::new(name, &before, &now)
            });
            before = now;
            began = Instant::now();
        };
        let model = Model::from_program_with(program, input, opening, &runtime)?;
        stage("open");
        let mut input_options = options.input.clone();
        input_options.random = true;
        let allocator = runtime.host().allocator();
        let inputs = model_inputs::from_options(
            &input_options,
            &options.file,
            &model,
            u64::MAX,
            allocator,
            &|_| false,
        )?;
        let described = inputs.data.iter().zip(model.inputs());
        let described = described.filter_map(|(datum, input)| {
            let kind = datum.as_ref()?.kind();
            Some(format!("{}: {kind}", input.name))
        });
        let described = described.collect();
        let files = inputs.files.clone();
        let arguments = model_inputs::arguments(&model, inputs)?;
        stage("inputs");
        for name in ["first call", "second call"] {
            let call = model.function().call(&runtime.context(), arguments.clone());
            call.wait().map_err(|error| Failure::Rejected {
                code: None,
                message: format!("the model fails: {}", error.message()),
                help: None,
            })?;
            stage(name);
        }
        let observed = observe::observe(input, opening, &model, &runtime, &arguments)?;
        let memory = Memory {
            schema: "tfrt.inspect-memory/1",
            file: input.name().to_owned(),
            inputs: described,
            file_bytes,
            is_mapped: options.input.mmap,
            stages,
            plan: MemoryPlan::new(&observed),
        };
        Ok((memory, files))
    }

    /// Returns the lines that people are shown.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("a String takes all text");
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let of = format!("{} with {}", self.file, self.inputs.join(", "));
        writeln!(text, "{}", visible::name(&of))?;
        let how = match self.is_mapped {
            true => "compiled, mapped",
            false => "compiled",
        };
        writeln!(text, "  {:<12} {:>12}", how, size(self.file_bytes))?;
        for stage in &self.stages {
            writeln!(
                text,
                "  {:<12} {:>12} held in {} blocks, {:>12} at most, {} allocations, {:.2} ms{}",
                stage.name,
                size(stage.held_bytes),
                stage.held_blocks,
                size(stage.most_bytes),
                stage.allocations,
                stage.elapsed_ms,
                match stage.private_bytes.zip(stage.mapped_bytes) {
                    Some((private, mapped)) => format!(
                        ", the process has written {}, and mapped {} of files",
                        size(private),
                        size(mapped)
                    ),
                    None => String::new(),
                }
            )?;
        }
        self.plan.write(text)
    }
}

/// The memory of a process that is resident.
#[derive(Clone, Copy)]
struct ResidentMemory {
    private_bytes: u64,
    mapped_bytes: u64,
}

impl ResidentMemory {
    /// Returns the resident memory of this process, if the system tells it (Linux: proc_pid_smaps(5)).
    fn now() -> Option<ResidentMemory> {
        let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
        let bytes = |name: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes = line.split_whitespace().next()?;
            Some(kilobytes.parse::<u64>().ok()? * 1024)
        };
        // Pages of a file that was just written are "private" and "dirty", too.
        let private_bytes = bytes("Anonymous:")?;
        Some(ResidentMemory {
            private_bytes,
            mapped_bytes: bytes("Rss:")?.saturating_sub(private_bytes),
        })
    }

    /// Returns the growth since `then`.
    fn since(self, then: ResidentMemory) -> ResidentMemory {
        ResidentMemory {
            private_bytes: self.private_bytes.saturating_sub(then.private_bytes),
            mapped_bytes: self.mapped_bytes.saturating_sub(then.mapped_bytes),
        }
    }
}

impl Stage {
    fn new(name: &'static str, before: &Profile, now: &Profile) -> Stage {
        Stage {
            name,
            held_bytes: now.current_bytes,
            held_blocks: now.current_allocations,
            most_bytes: now.max_bytes,
            allocations: now.total_allocations - before.total_allocations,
            elapsed_ms: 0.0,
            private_bytes: None,
            mapped_bytes: None,
        }
    }
}
