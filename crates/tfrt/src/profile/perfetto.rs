//! Writes a profile as a trace that Perfetto opens (<https://ui.perfetto.dev>).
//!
//! A trace is a message with packets, most of them *track events*: the beginning or the end of a
//! slice on a track, or the value of a counter. Names stand once, in the first packet, and are
//! referred to by number. The numbers of fields are those of Perfetto's `trace_packet.proto`,
//! `track_event.proto`, `track_descriptor.proto`, `debug_annotation.proto` and `interned_data.proto`,
//! as they are in the [reference](https://perfetto.dev/docs/reference/trace-packet-proto); the
//! format promises not to change them.

use std::collections::HashMap;
use std::io::{self, Write};

use tfrt_host::SourceLocation;

use super::message::Message;
use super::{Activity, Profile, ProfiledThread, Sample, Slice};

/// `Trace.packet`.
const PACKET: u32 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    /// Flags of a sequence: names begin here; names are needed.
    pub const CLEARED: u64 = 1;
    pub const NEEDS_STATE: u64 = 2;
}

/// Fields of `TrackDescriptor` and of what lies in it.
mod descriptor {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;
    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_NAME: u32 = 6;
    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;
    pub const COUNTER_UNIT: u32 = 3;
    pub const UNIT_COUNT: u64 = 2;
    pub const UNIT_BYTES: u64 = 3;
}

/// Fields of `TrackEvent`, and its types.
mod event {
    pub const CATEGORY: u32 = 3;
    pub const ANNOTATION: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const SOURCE_LOCATION: u32 = 34;
    pub const FLOW: u32 = 47;
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
mod annotation {
    pub const NAME: u32 = 1;
    pub const NUMBER: u32 = 3;
    pub const TEXT: u32 = 17;
}

/// Fields of `InternedData`, and of what lies in it: a number and a text, or a place.
mod interned {
    pub const CATEGORY: u32 = 1;
    pub const EVENT_NAME: u32 = 2;
    pub const ANNOTATION_NAME: u32 = 3;
    pub const SOURCE_LOCATION: u32 = 4;
    pub const ANNOTATION_TEXT: u32 = 29;
    pub const ID: u32 = 1;
    pub const TEXT: u32 = 2;
    pub const FILE: u32 = 2;
    pub const FUNCTION: u32 = 3;
    pub const LINE: u32 = 4;
}

/// Numbers of interned texts; kernels follow behind the names.
const KERNEL_CATEGORY: u64 = 1;
const QUEUE_CATEGORY: u64 = 2;
const PART_CATEGORY: u64 = 3;
const TASK: u64 = 1;
const STEAL: u64 = 2;
const PARK: u64 = 3;
const FIRST_KERNEL: u64 = 4;
const IN_FUNCTION: u64 = 1;
const AT: u64 = 2;
const N_TASKS: u64 = 3;

/// Tracks: the process, its counters, and its threads behind them.
const PROCESS: u64 = 1;
const TASKS_COUNTER: u64 = 2;
const BYTES_COUNTER: u64 = 3;
const FIRST_THREAD: u64 = 4;

/// The distance between the numbers of processes of one picture.
const MAX_THREADS: u64 = 1 << 10;

/// The process that a trace is of, among those of one picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedProcess<'n> {
    /// Its name.
    pub name: &'n str,
    /// Its number among the processes, if there are several: files of processes with other numbers, put one behind the
    /// other, are one trace.
    pub number: Option<u32>,
    /// The time at which the recorder was made, by the clock that all processes share, in nanoseconds.
    pub begin_ns: u64,
}

impl<'n> TracedProcess<'n> {
    /// Returns a process of which there is one.
    pub fn alone(name: &'n str) -> TracedProcess<'n> {
        TracedProcess {
            name,
            number: None,
            begin_ns: 0,
        }
    }

    /// Returns a number of this process's as one of the picture's.
    fn own(&self, number: u64) -> u64 {
        u64::from(self.number.unwrap_or(0)) << 32 | number
    }
}

/// Writes a trace of `profile`, with `samples` as counters, for a process.
///
/// # Errors
///
/// Those of `out`.
pub fn write_perfetto(
    profile: &Profile,
    samples: &[Sample],
    process: &TracedProcess<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut trace = Trace {
        out,
        process: *process,
        texts: Texts::default(),
    };
    trace.names(profile)?;
    trace.tracks(profile)?;
    for (index, thread) in profile.threads.iter().enumerate() {
        trace.thread(FIRST_THREAD + index as u64, thread)?;
    }
    for sample in samples {
        trace.counter(sample.at_ns, TASKS_COUNTER, sample.tasks)?;
        trace.counter(sample.at_ns, BYTES_COUNTER, sample.live_bytes)?;
    }
    trace.out.flush()
}

/// The texts of annotations of kernels: function and place.
#[derive(Default)]
struct Texts {
    by_kernel: Vec<(u64, Option<u64>)>,
}

struct Trace<'o> {
    out: &'o mut dyn Write,
    process: TracedProcess<'o>,
    texts: Texts,
}

impl Trace<'_> {
    fn packet(&mut self, flags: u64, content: Message) -> io::Result<()> {
        let packet = content
            .number(packet::SEQUENCE_ID, self.sequence())
            .number(packet::SEQUENCE_FLAGS, flags);
        let framed = Message::new().message(PACKET, &packet);
        self.out.write_all(framed.as_bytes())
    }

    /// Returns the number by which texts of this process are told from those of others.
    fn sequence(&self) -> u64 {
        u64::from(self.process.number.unwrap_or(0)) + 1
    }

    fn event(&mut self, at_ns: u64, event: &Message) -> io::Result<()> {
        let content = Message::new()
            .number(packet::TIMESTAMP, self.process.begin_ns + at_ns)
            .message(packet::TRACK_EVENT, event);
        self.packet(packet::NEEDS_STATE, content)
    }

    /// Writes the first packet: all texts.
    fn names(&mut self, profile: &Profile) -> io::Result<()> {
        let text = |id: u64, text: &str| {
            let message = Message::new().number(interned::ID, id);
            message.text(interned::TEXT, text)
        };
        let mut data = Message::new();
        let categories = [
            (KERNEL_CATEGORY, "kernel"),
            (QUEUE_CATEGORY, "queue"),
            (PART_CATEGORY, "part of a kernel"),
        ];
        for (id, name) in categories {
            data = data.message(interned::CATEGORY, &text(id, name));
        }
        for (id, name) in [(TASK, "task"), (STEAL, "steal"), (PARK, "asleep")] {
            data = data.message(interned::EVENT_NAME, &text(id, name));
        }
        for (id, name) in [(IN_FUNCTION, "function"), (AT, "at"), (N_TASKS, "tasks")] {
            data = data.message(interned::ANNOTATION_NAME, &text(id, name));
        }
        let mut known: HashMap<String, u64> = HashMap::new();
        let mut texts = Vec::new();
        let mut number = |value: String| {
            let next = known.len() as u64 + 1;
            *known.entry(value).or_insert_with_key(|value| {
                texts.push(text(next, value));
                next
            })
        };
        for (index, kernel) in profile.kernels.iter().enumerate() {
            let id = FIRST_KERNEL + index as u64;
            data = data.message(interned::EVENT_NAME, &text(id, &kernel.name));
            let function = match kernel.function.as_str() {
                "" => "a region",
                name => name,
            };
            let place = kernel.location.as_ref().map(ToString::to_string);
            let of_kernel = (number(function.to_owned()), place.map(&mut number));
            self.texts.by_kernel.push(of_kernel);
            if let Some(SourceLocation::FileLineCol { file, line, .. }) = &kernel.location {
                let place = Message::new()
                    .number(interned::ID, id)
                    .text(interned::FILE, file)
                    .text(interned::FUNCTION, function)
                    .number(interned::LINE, u64::from(*line));
                data = data.message(interned::SOURCE_LOCATION, &place);
            }
        }
        for text in &texts {
            data = data.message(interned::ANNOTATION_TEXT, text);
        }
        let flags = packet::CLEARED | packet::NEEDS_STATE;
        self.packet(flags, Message::new().message(packet::INTERNED_DATA, &data))
    }

    fn tracks(&mut self, profile: &Profile) -> io::Result<()> {
        // Numbers of processes on several machines may be the same; those of threads are to differ as well.
        let pid = match self.process.number {
            None => u64::from(std::process::id()),
            Some(number) => (u64::from(number) + 1) * MAX_THREADS,
        };
        let of_process = Message::new()
            .number(descriptor::PROCESS_PID, pid)
            .text(descriptor::PROCESS_NAME, self.process.name);
        let process = Message::new()
            .number(descriptor::UUID, self.process.own(PROCESS))
            .message(descriptor::PROCESS, &of_process);
        self.track(&process)?;
        for (index, thread) in profile.threads.iter().enumerate() {
            let index = index as u64;
            // Not the system's numbers, which nobody knows here, but numbers that tell threads apart;
            // that of the process is its main thread's.
            let tid = match thread.name.as_str() {
                "main" => pid,
                _ => pid + 1 + index,
            };
            let of_thread = Message::new()
                .number(descriptor::THREAD_PID, pid)
                .number(descriptor::THREAD_TID, tid)
                .text(descriptor::THREAD_NAME, &thread.name);
            let track = Message::new()
                .number(descriptor::UUID, self.process.own(FIRST_THREAD + index))
                .number(descriptor::PARENT_UUID, self.process.own(PROCESS))
                .message(descriptor::THREAD, &of_thread);
            self.track(&track)?;
        }
        let counters = [
            (
                TASKS_COUNTER,
                "tasks queued or running",
                descriptor::UNIT_COUNT,
            ),
            (BYTES_COUNTER, "live bytes", descriptor::UNIT_BYTES),
        ];
        for (uuid, name, unit) in counters {
            let counter = Message::new().number(descriptor::COUNTER_UNIT, unit);
            let track = Message::new()
                .number(descriptor::UUID, self.process.own(uuid))
                .number(descriptor::PARENT_UUID, self.process.own(PROCESS))
                .text(descriptor::NAME, name)
                .message(descriptor::COUNTER, &counter);
            self.track(&track)?;
        }
        Ok(())
    }

    fn track(&mut self, track: &Message) -> io::Result<()> {
        let content = Message::new().message(packet::TRACK_DESCRIPTOR, track);
        self.packet(packet::NEEDS_STATE, content)
    }

    /// Writes the slices of a thread: each inside of those that began before and have not ended.
    fn thread(&mut self, track: u64, thread: &ProfiledThread) -> io::Result<()> {
        let mut slices: Vec<&Slice> = thread.slices.iter().collect();
        slices.sort_by_key(|slice| (slice.begin_ns, std::cmp::Reverse(slice.end_ns)));
        let mut open: Vec<u64> = Vec::new();
        for slice in slices {
            while open.last().is_some_and(|end_ns| *end_ns <= slice.begin_ns) {
                self.end(track, open.pop())?;
            }
            self.begin(track, slice)?;
            if !matches!(slice.activity, Activity::Steal(_)) {
                // Clocks of two processors may differ a little: what lies inside ends inside.
                let around = open.last().copied().unwrap_or(u64::MAX);
                open.push(slice.end_ns.min(around));
            }
        }
        while !open.is_empty() {
            self.end(track, open.pop())?;
        }
        Ok(())
    }

    fn end(&mut self, track: u64, end_ns: Option<u64>) -> io::Result<()> {
        let event = Message::new()
            .number(event::TYPE, event::SLICE_END)
            .number(event::TRACK_UUID, self.process.own(track));
        self.event(end_ns.unwrap_or_default(), &event)
    }

    fn begin(&mut self, track: u64, slice: &Slice) -> io::Result<()> {
        let begins = |kind: u64, category: u64, name: u64| {
            Message::new()
                .number(event::TYPE, kind)
                .number(event::TRACK_UUID, self.process.own(track))
                .number(event::CATEGORY, category)
                .number(event::NAME, name)
        };
        let note = |name: u64, field: u32, value: u64| {
            let note = Message::new().number(annotation::NAME, name);
            note.number(field, value)
        };
        let mut event = match slice.activity {
            Activity::Task => begins(event::SLICE_BEGIN, QUEUE_CATEGORY, TASK),
            Activity::Park => begins(event::SLICE_BEGIN, QUEUE_CATEGORY, PARK),
            Activity::Steal(n_tasks) => begins(event::INSTANT, QUEUE_CATEGORY, STEAL).message(
                event::ANNOTATION,
                &note(N_TASKS, annotation::NUMBER, u64::from(n_tasks)),
            ),
            Activity::Kernel(index) | Activity::Part(index) => {
                let id = FIRST_KERNEL + index as u64;
                let (function, place) = self.texts.by_kernel[index];
                let category = match slice.activity {
                    Activity::Part(_) => PART_CATEGORY,
                    _ => KERNEL_CATEGORY,
                };
                let event = begins(event::SLICE_BEGIN, category, id).message(
                    event::ANNOTATION,
                    &note(IN_FUNCTION, annotation::TEXT, function),
                );
                match place {
                    Some(place) => event
                        .message(event::ANNOTATION, &note(AT, annotation::TEXT, place))
                        .number(event::SOURCE_LOCATION, id),
                    None => event,
                }
            }
        };
        if let Some(path) = slice.critical_path {
            event = event.fixed(event::FLOW, self.process.own(u64::from(path) + 1));
        }
        self.event(slice.begin_ns, &event)
    }

    fn counter(&mut self, at_ns: u64, track: u64, value: u64) -> io::Result<()> {
        let event = Message::new()
            .number(event::TYPE, event::COUNTER)
            .number(event::TRACK_UUID, self.process.own(track))
            .number(event::COUNTER_VALUE, value);
        self.event(at_ns, &event)
    }
}
