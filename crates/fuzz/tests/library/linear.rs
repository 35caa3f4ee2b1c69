//! Tests that hostile input costs time and memory in proportion to its length.
//!
//! Time is that which the thread spent on a processor, so that other work does not count; memory is
//! counted by the allocator of this program. Each kind of input is tried in sizes that double.

use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tfrt_bef::{BefBuffer, BefFile, listing};
use tfrt_compiler::decompile;
use tfrt_differential::test_runtime::TestRuntime;
use tfrt_fuzz::hostile::{FILES, Hostile, TEXTS};
use tfrt_fuzz::text;

use crate::own_process::in_own_process;

// Of each thread.
thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static TOTAL: Cell<usize> = const { Cell::new(0) };
}

/// Counts bytes that this thread took, and bytes that it gave back.
pub fn count(taken: usize, given_back: usize) {
    // A thread that ends has no counts any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + taken.cast_signed() - given_back.cast_signed());
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
        let _ = TOTAL.try_with(|total| total.set(total.get() + taken));
    });
}

/// The cost of some work.
#[derive(Clone, Copy, Debug)]
struct Cost {
    len: usize,
    /// The bytes held at one time beyond those held before.
    peak: usize,
    /// The bytes taken in all.
    total: usize,
    time: Duration,
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).expect("the clock does not run backwards")
}

/// Does some work a few times, and returns the least that it cost.
fn measured(input: &[u8], work: &dyn Fn(&[u8])) -> Cost {
    let once = || {
        let live = LIVE.get();
        PEAK.set(live);
        let (total, begin) = (TOTAL.get(), processor_time());
        work(input);
        let time = processor_time() - begin;
        assert_eq!(LIVE.get(), live, "nothing is kept");
        let peak = usize::try_from(PEAK.get() - live).expect("it is at least what was live");
        (peak, TOTAL.get() - total, time)
    };
    // What is made once for all is not counted.
    work(input);
    let (mut peak, mut total, mut time) = once();
    for _ in 0..2 {
        let again = once();
        (peak, total, time) = (peak.min(again.0), total.min(again.1), time.min(again.2));
    }
    let len = input.len();
    Cost {
        len,
        peak,
        total,
        time,
    }
}

/// The lengths of inputs, about, each twice the one before.
const LENGTHS: [usize; 4] = [1 << 12, 1 << 13, 1 << 14, 1 << 15];

/// The bounds of an input's cost.
struct Bounds {
    /// The bytes that an input may take whatever its length.
    base: usize,
    /// The bytes held at one time, per byte of input.
    peak: usize,
    /// The bytes taken in all, per byte of input.
    total: usize,
}

/// The bytes that any file may take.
const FILE_BASE: usize = 1 << 16;

/// The bytes that loading may take all in all: a few hundred problems, at locations that say 64
/// KiB.
const LOAD_BASE: usize = 1 << 27;

/// The bytes that any text may take, all in all: nesting to the limit, diagnostics to theirs.
const TEXT_BASE: usize = 1 << 24;

/// The factor by which the largest input may cost more per byte than the smallest. Work that grows
/// with the square of the length would cost eight times as much; time is not measured exactly.
const MAX_GROWTH: u32 = 4;

/// The number of comparisons before times count as growing.
const N_TRIES: usize = 4;

/// The shortest time that is compared.
const SHORT: Duration = Duration::from_micros(500);

fn check(hostile: &Hostile, bounds: &Bounds, work: &dyn Fn(&[u8])) -> Result<(), String> {
    // What is repeated has other lengths in each kind.
    let unit = 1_000;
    let per_unit = (hostile.make)(unit).len();
    let costs = LENGTHS.map(|len| measured(&(hostile.make)(len * unit / per_unit), work));
    println!("{}", hostile.name);
    for cost in costs {
        let per_byte = |bytes: usize| bytes as f64 / cost.len as f64;
        let (peak, total) = (per_byte(cost.peak), per_byte(cost.total));
        println!(
            "  {:8} bytes: peak {peak:6.1}, total {total:6.1} a byte, {:?}",
            cost.len, cost.time
        );
        if cost.peak > bounds.peak * cost.len + bounds.base
            || cost.total > bounds.total * cost.len + bounds.base
        {
            return Err(format!("{}: {cost:?}", hostile.name));
        }
    }
    let [mut first, .., mut last] = costs;
    let scale = u32::try_from(last.len.div_ceil(first.len)).expect("it is small");
    // A processor that slows down between the two makes them look further apart: they are measured again, one
    // right after the other. What really grows does so each time.
    for _ in 0..N_TRIES {
        if last.time <= first.time.max(SHORT) * scale * MAX_GROWTH {
            return Ok(());
        }
        [first, last] = [LENGTHS[0], LENGTHS[LENGTHS.len() - 1]]
            .map(|len| measured(&(hostile.make)(len * unit / per_unit), work));
    }
    Err(format!("{}: from {first:?} to {last:?}", hostile.name))
}

fn check_all(all: &[Hostile], bounds: &Bounds, work: &dyn Fn(&[u8])) {
    let failed = all
        .iter()
        .filter_map(|hostile| check(hostile, bounds, work).err());
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn the_gate_takes_time_and_memory_in_proportion_to_the_file() {
    let open = |bytes: &[u8]| {
        let _ = BefFile::open(BefBuffer::from_vec(bytes.to_vec()));
    };
    check_all(
        FILES,
        &Bounds {
            base: FILE_BASE,
            peak: 12,
            total: 16,
        },
        &open,
    );
}

#[test]
fn loading_and_running_take_time_and_memory_in_proportion_to_the_file() {
    // It counts the values of the process.
    in_own_process(
        "linear::loading_and_running_take_time_and_memory_in_proportion_to_the_file",
        load_and_run,
    );
}

fn load_and_run() {
    let runtime = TestRuntime::harmless();
    let run = |bytes: &[u8]| {
        if let Ok(file) = BefFile::open(BefBuffer::from_vec(bytes.to_vec())) {
            runtime
                .run_untrusted(&file)
                .expect("nothing is left behind");
        }
    };
    check_all(
        FILES,
        &Bounds {
            base: LOAD_BASE,
            peak: 256,
            total: 512,
        },
        &run,
    );
}

#[test]
fn decompiling_takes_time_and_memory_in_proportion_to_the_file() {
    let decompile = |bytes: &[u8]| {
        if let Ok(file) = BefFile::open(BefBuffer::from_vec(bytes.to_vec())) {
            let _ = decompile(&file);
        }
    };
    check_all(
        FILES,
        &Bounds {
            base: FILE_BASE,
            peak: 64,
            total: 256,
        },
        &decompile,
    );
}

#[test]
fn listing_takes_time_and_memory_in_proportion_to_the_file() {
    let list = |bytes: &[u8]| {
        if let Ok(file) = BefFile::open(BefBuffer::from_vec(bytes.to_vec())) {
            let mut len = 0;
            listing::list(&file, &mut |piece| len += piece.text.len());
            // A piece has a byte at least, and says a line or two.
            assert!(len <= 300 * bytes.len(), "{len} bytes of text");
        }
    };
    let bounds = Bounds {
        base: LOAD_BASE,
        peak: 12,
        total: 1_024,
    };
    check_all(FILES, &bounds, &list);
}

#[test]
fn parsing_takes_time_and_memory_in_proportion_to_the_text() {
    check_all(
        TEXTS,
        &Bounds {
            base: TEXT_BASE,
            peak: 64,
            // Each of a hundred diagnostics looks for a name like the one that is not there.
            total: 4_096,
        },
        &text::parse,
    );
}
