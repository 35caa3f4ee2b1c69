//! [`Report`]: a profile as one page that a browser opens, without anything from elsewhere.
//!
//! | Part | Is |
//! |---|---|
//! | `report.rs` | what there is to say, as a document |
//! | `report/source_lines.rs` | functions, kernels, and the lines on which they stand |
//! | `report/sources.rs` | the texts of these lines |
//! | `report/timeline.rs` | what threads did, made small enough to be drawn |
//! | `report/json.rs` | JSON that may stand inside of a page |
//! | `report/page/` | the page, which draws what the document says |
//!
//! The document stands in the page as JSON (`tfrt.profile/1`). Lists of what there is much of are
//! columns: the same index in each is the same thing.

use std::fmt;
use std::io::{self, Write};

use tfrt_host::SourceLocation;
use tfrt_host::record::{FunctionId, GaugeRecording, Recording};

use super::calls::{Calls, Totals};
use super::graphs::{Graph, Graphs};
use super::runs::runs;
use super::{Activity, Profile, Statistics};
use crate::program::Program;

mod json;
mod source_lines;
mod sources;
mod timeline;

use json::Json;
use source_lines::{Function, SourceLines};
use timeline::{Kind, Mark, Timeline};

/// The name of the document's JSON schema.
const SCHEMA: &str = "tfrt.profile/1";

/// The page, with a place for the document.
const PAGE: &str = include_str!("report/page/page.html");
const STYLE: &str = include_str!("report/page/page.css");
const SCRIPTS: [&str; 7] = [
    include_str!("report/page/base.js"),
    include_str!("report/page/summary.js"),
    include_str!("report/page/source.js"),
    include_str!("report/page/timeline.js"),
    include_str!("report/page/graph.js"),
    include_str!("report/page/layout.js"),
    include_str!("report/page/start.js"),
];

/// Facts about a run that its recording does not have.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The program, as people call it.
    pub name: String,
    /// The work queue.
    pub queue: String,
    /// Threads that run kernels.
    pub n_threads: usize,
    /// The functions that were called from outside, in the order of time.
    pub calls: Vec<CallSpan>,
    /// The errors.
    pub errors: Vec<ReportedError>,
    /// The bytes that the host's allocator had given out.
    pub memory: Option<GaugeRecording>,
}

/// A function that was called from outside.
#[derive(Clone, Debug, Default)]
pub struct CallSpan {
    /// The function.
    pub function: String,
    /// The time of the call, in nanoseconds since the recorder was made.
    pub begin_ns: u64,
    /// The time when nothing of the call was left to run, in nanoseconds since the recorder was made.
    pub end_ns: u64,
    /// The outcome in a word: `returned`, `failed` or `cancelled`.
    pub outcome: &'static str,
}

/// An error of a run.
#[derive(Clone, Debug, Default)]
pub struct ReportedError {
    /// The message.
    pub message: String,
    /// The kernel that has reported it.
    pub kernel: Option<String>,
    /// The place of the kernel in a source.
    pub location: Option<SourceLocation>,
}

/// The text of a source.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// The text.
    pub text: String,
    /// Whether it was read after the program was compiled, so that it may be another by now.
    pub is_read_later: bool,
}

/// A profile as a page.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tfrt::{Runtime, profile::{About, Profile, Recorder, Report}};
///
/// let recorder = Arc::new(Recorder::new());
/// let runtime = Runtime::builder().recorder(recorder.clone()).build();
/// let program = runtime.compile("one.mlir", "func.func @one() -> i32 {
///   %a = tfrt.constant.i32 1
///   tfrt.return %a : i32
/// }")?;
/// program.function("one").unwrap().call(&runtime.context(), ()).wait()?;
///
/// let (recording, programs) = (recorder.recording(), [program]);
/// let profile = Profile::new(&recording, &programs);
/// let report = Report::new(&profile, &recording, &programs, &About::default(), &|_| None);
/// assert!(report.document().starts_with(r#"{"schema":"tfrt.profile/1","#));
///
/// let mut page = Vec::new();
/// report.write_page(&mut page)?;
/// assert!(page.starts_with(b"<!doctype html>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Report {
    document: String,
}

impl Report {
    /// Makes the report on `profile`, which was made of `recording` and `programs`. `source` finds the texts of files
    /// by the names that programs give them.
    pub fn new(
        profile: &Profile,
        recording: &Recording,
        programs: &[Program],
        about: &About,
        source: &dyn Fn(&str) -> Option<SourceText>,
    ) -> Report {
        let runs = runs(profile, recording);
        let graphs = Graphs::new(&runs, programs);
        let mut functions: Vec<FunctionId> = runs.iter().map(|run| run.function).collect();
        functions.sort_unstable();
        functions.dedup();
        let places = SourceLines::new(&functions, programs, &about.errors);
        let begins_ns: Vec<u64> = about.calls.iter().map(|call| call.begin_ns).collect();
        let line_of = |function, kernel| places.line(function, kernel);
        let calls = Calls::new(&runs, &graphs, &begins_ns, line_of);
        let writer = Writer {
            profile,
            about,
            places: &places,
            graphs: &graphs,
            calls: &calls,
        };
        let mut json = Json::default();
        json.object(|json| writer.write(json, source));
        Report {
            document: json.into_text(),
        }
    }

    /// Returns the document that the page shows, as JSON.
    pub fn document(&self) -> &str {
        &self.document
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rest = PAGE;
        // The page has each of these once, in this order.
        let (style, scripts) = ("/*STYLE*/", "/*SCRIPTS*/");
        for place in [style, "/*DOCUMENT*/", scripts] {
            let (before, behind) = rest.split_once(place).expect("the page has places");
            out.write_all(before.as_bytes())?;
            match place {
                _ if place == style => out.write_all(STYLE.as_bytes())?,
                _ if place == scripts => {
                    for script in SCRIPTS {
                        out.write_all(script.as_bytes())?;
                    }
                }
                _ => out.write_all(self.document.as_bytes())?,
            }
            rest = behind;
        }
        out.write_all(rest.as_bytes())?;
        out.flush()
    }
}

/// An index, or -1 for none.
struct OptionalIndex(Option<usize>);

impl fmt::Display for OptionalIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(index) => index.fmt(f),
            None => f.write_str("-1"),
        }
    }
}

struct Writer<'a> {
    profile: &'a Profile,
    about: &'a About,
    places: &'a SourceLines,
    graphs: &'a Graphs,
    calls: &'a Calls,
}

impl Writer<'_> {
    fn write(&self, json: &mut Json, source: &dyn Fn(&str) -> Option<SourceText>) {
        let about = self.about;
        let statistics = Statistics::new(self.profile);
        json.field("schema").text(SCHEMA);
        json.field("version").text(env!("CARGO_PKG_VERSION"));
        json.field("name").text(&about.name);
        json.field("queue").text(&about.queue);
        json.field("n_threads").number(about.n_threads);
        json.field("end_ns").number(self.profile.end_ns);
        json.field("span_ns").number(statistics.span_ns);
        json.field("lost_events").number(statistics.n_lost);
        json.field("scopes_are_shared")
            .number(self.calls.scopes_are_shared);
        json.field("calls")
            .list(|json| self.calls_from_outside(json));
        json.field("errors").list(|json| self.errors(json));
        json.field("paths").list(|json| self.paths(json));
        json.field("files").list(|json| {
            let files = sources::collect(self.places, source);
            files.iter().for_each(|file| file.write(json));
        });
        json.field("lines").object(|json| self.lines(json));
        json.field("names").texts(self.places.names());
        json.field("functions").list(|json| self.functions(json));
        json.field("kernels").object(|json| self.kernels(json));
        json.field("scopes").list(|json| self.scopes(json));
        self.threads(json, &statistics);
        if let Some(memory) = &about.memory {
            json.field("memory").object(|json| level(json, memory));
        }
    }

    fn calls_from_outside(&self, json: &mut Json) {
        for call in &self.about.calls {
            json.object(|json| {
                json.field("function").text(&call.function);
                json.field("begin_ns").number(call.begin_ns);
                json.field("end_ns").number(call.end_ns);
                json.field("outcome").text(call.outcome);
            });
        }
    }

    fn errors(&self, json: &mut Json) {
        for (error, line) in self.about.errors.iter().zip(self.places.error_lines()) {
            json.object(|json| {
                json.field("message").text(&error.message);
                if let Some(kernel) = &error.kernel {
                    json.field("kernel").text(kernel);
                }
                json.field("line").number(OptionalIndex(*line));
            });
        }
    }

    /// Writes the critical paths, the last to end first.
    fn paths(&self, json: &mut Json) {
        let critical = self.profile.slices().filter_map(|(_, slice)| {
            let path = slice.critical_path?;
            Some((path, slice.begin_ns, slice.end_ns, slice.activity))
        });
        let mut critical: Vec<_> = critical.collect();
        critical.sort_by_key(|(path, begin_ns, ..)| (*path, *begin_ns));
        for path in critical.chunk_by(|(a, ..), (b, ..)| a == b) {
            let begin_ns = path[0].1;
            // Parts may lie side by side.
            let (mut end_ns, mut busy_ns, mut n_kernels) = (begin_ns, 0, 0);
            for (_, begin, end, activity) in path {
                busy_ns += end.saturating_sub(end_ns.max(*begin));
                end_ns = end_ns.max(*end);
                n_kernels += u64::from(matches!(activity, Activity::Kernel(_)));
            }
            json.object(|json| {
                json.field("begin_ns").number(begin_ns);
                json.field("end_ns").number(end_ns);
                json.field("busy_ns").number(busy_ns);
                json.field("kernels").number(n_kernels);
            });
        }
    }

    fn lines(&self, json: &mut Json) {
        let times = |line: usize| self.calls.lines.get(line).copied().unwrap_or_default();
        let numbers = || 0..self.places.lines().len();
        json.field("file").numbers(
            self.places
                .lines()
                .iter()
                .map(|line| OptionalIndex(line.file)),
        );
        json.field("line")
            .numbers(self.places.lines().iter().map(|line| line.line));
        let own: Vec<Totals> = numbers().map(|line| times(line).own).collect();
        totals(json, &own);
        json.field("total_ns")
            .numbers(numbers().map(|line| times(line).total_ns));
    }

    fn functions(&self, json: &mut Json) {
        let mut steps: Vec<Vec<[u32; 2]>> = vec![Vec::new(); self.places.functions().len()];
        for step in &self.profile.critical_steps {
            if let Some(function) = self.places.function_index(step.function) {
                steps[function].push([step.producer, step.user]);
            }
        }
        for (function, steps) in self.places.functions().iter().zip(&mut steps) {
            let graph = self.graphs.of(function.id);
            json.object(|json| {
                json.field("name").text(&function.name);
                if let Some(kernel) = self.caller_of_region(function, graph) {
                    json.field("region_of").number(kernel);
                }
                json.field("first").number(function.first_kernel);
                json.field("n").number(function.n_kernels);
                let kernels = || 0..u32::try_from(function.n_kernels).unwrap_or(u32::MAX);
                json.field("producers").list(|json| {
                    for kernel in kernels() {
                        json.numbers(graph.map_or(&[][..], |graph| graph.producers(kernel)));
                    }
                });
                json.field("results")
                    .numbers(graph.map_or(&[][..], |graph| &graph.last));
                steps.sort_unstable();
                json.field("critical").numbers(steps.iter().flatten());
            });
        }
    }

    /// Returns the kernel that has the region whose function this is.
    fn caller_of_region(&self, function: &Function, graph: Option<&Graph>) -> Option<usize> {
        let callers = graph.filter(|_| function.name.is_empty())?.callers.iter();
        let mut known = callers.filter_map(|(id, kernel)| self.places.kernel_index(*id, *kernel));
        known.next()
    }

    fn kernels(&self, json: &mut Json) {
        let kernels = self.places.kernels();
        json.field("name")
            .numbers(kernels.iter().map(|kernel| kernel.name));
        json.field("line")
            .numbers(kernels.iter().map(|kernel| kernel.line));
        let mut sums = vec![Totals::default(); kernels.len()];
        for (function, ran) in self.calls.functions.iter().zip(&self.calls.kernels) {
            for (kernel, sum) in ran {
                if let Some(index) = self.places.kernel_index(*function, *kernel) {
                    sums[index] = *sum;
                }
            }
        }
        totals(json, &sums);
    }

    fn scopes(&self, json: &mut Json) {
        for scope in &self.calls.scopes {
            json.object(|json| {
                json.field("function").number(scope.function);
                if let Some((parent, kernel)) = scope.parent {
                    json.field("parent").number(parent);
                    json.field("kernel").number(kernel);
                }
                json.field("calls").number(scope.n_calls);
                json.field("rows").list(|json| {
                    for (kernel, own) in &scope.rows {
                        json.number(kernel);
                        json.number(own.n_runs);
                        json.number(own.own_ns);
                        json.number(own.critical_ns);
                    }
                });
            });
        }
    }

    fn threads(&self, json: &mut Json, statistics: &Statistics) {
        let timeline = Timeline::new(&self.profile.threads);
        json.field("merged_below_ns")
            .number(timeline.merged_below_ns);
        json.field("threads").list(|json| {
            let threads = self.profile.threads.iter().zip(&statistics.threads);
            for ((thread, time), marks) in threads.zip(&timeline.threads) {
                json.object(|json| {
                    json.field("name").text(&thread.name);
                    json.field("is_worker").number(thread.is_worker);
                    json.field("lost_events").number(thread.n_lost);
                    json.field("busy_ns").number(time.busy_ns);
                    json.field("asleep_ns").number(time.asleep_ns);
                    json.field("idle_ns").number(time.idle_ns);
                    json.field("tasks").number(time.n_tasks);
                    json.field("kernels").number(time.n_kernels);
                    json.field("steals").number(time.n_steals);
                    json.field("parks").number(time.n_parks);
                    json.field("marks").list(|json| self.marks(json, marks));
                });
            }
        });
    }

    /// Writes four numbers for each mark: what (a kernel, or below -9 a part of one), when after the beginning of the
    /// one before, how long, and how many; a negative number of those is on a critical path.
    fn marks(&self, json: &mut Json, marks: &[Mark]) {
        let mut before_ns = 0;
        for mark in marks {
            match mark.kind {
                Kind::Kernel(kernel) => {
                    let (function, number) = self.profile.kernel_ids[kernel];
                    json.number(OptionalIndex(self.places.kernel_index(function, number)));
                }
                Kind::Part(kernel) => {
                    let (function, number) = self.profile.kernel_ids[kernel];
                    match self.places.kernel_index(function, number) {
                        Some(index) => json.number(format_args!("-{}", index + 10)),
                        None => json.number(-1),
                    }
                }
                Kind::Kernels => json.number(-1),
                Kind::Task => json.number(-2),
                Kind::Park => json.number(-3),
                Kind::Steal(_) => json.number(-4),
            }
            json.number(mark.begin_ns - before_ns);
            json.number(mark.end_ns - mark.begin_ns);
            let sign = if mark.is_critical { "-" } else { "" };
            let n = match mark.kind {
                Kind::Steal(n_tasks) => u64::from(n_tasks),
                _ => mark.n_slices,
            };
            json.number(format_args!("{sign}{n}"));
            before_ns = mark.begin_ns;
        }
    }
}

/// Writes a column for each number of `totals`.
fn totals(json: &mut Json, totals: &[Totals]) {
    type Column = (&'static str, fn(&Totals) -> u64);
    const COLUMNS: [Column; 4] = [
        ("runs", |sum| sum.n_runs),
        ("own_ns", |sum| sum.own_ns),
        ("longest_ns", |sum| sum.longest_ns),
        ("critical_ns", |sum| sum.critical_ns),
    ];
    for (name, of) in COLUMNS {
        json.field(name).numbers(totals.iter().map(of));
    }
}

fn level(json: &mut Json, level: &GaugeRecording) {
    json.field("resolution_ns").number(level.resolution_ns);
    json.field("now").number(level.now);
    json.field("peak").number(level.peak);
    json.field("peak_at_ns").number(level.peak_at_ns);
    json.field("allocations").number(level.n_added);
    json.field("allocated").number(level.added);
    let steps = || level.steps.iter();
    json.field("at_ns")
        .numbers(steps().map(|step| step.begin_ns));
    json.field("min").numbers(steps().map(|step| step.min));
    json.field("max").numbers(steps().map(|step| step.max));
    json.field("last").numbers(steps().map(|step| step.last));
}
