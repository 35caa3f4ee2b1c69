//! Comparison of contenders, which do one work in turns.
//!
//! In each round everybody works once, for about a millisecond, each round in another order.
//! Medians of the rounds say how long each takes; since who is compared ran at nearly the same time,
//! the median of the rounds' ratios says who is faster even where the machine changes its speed
//! meanwhile.

use std::hint::black_box;
use std::time::Duration;

use crate::measure::{Clock, Times};

/// The time that a contender works in a round, about.
const ROUND: Duration = Duration::from_millis(1);

/// The time and answer of doing the work some times.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The time that it took.
    pub time: Duration,
    /// The answer of the last time.
    pub answer: i32,
}

/// A function that does the work so many times, on its own clock.
pub type Work = Box<dyn FnMut(u32) -> Sample>;

/// A contender, which does the work.
pub struct Contender {
    /// The name of the contender.
    pub name: String,
    /// The work.
    pub work: Work,
}

impl Contender {
    /// Returns a contender in this process, whose work is timed by `clock`.
    pub fn new(
        name: impl Into<String>,
        clock: Clock,
        mut work: impl FnMut() -> i32 + 'static,
    ) -> Contender {
        Contender {
            name: name.into(),
            work: Box::new(move |n_times| {
                let start = clock.now();
                let mut answer = 0;
                for _ in 0..n_times {
                    answer = black_box(work());
                }
                let time = clock.now().saturating_sub(start);
                Sample { time, answer }
            }),
        }
    }
}

/// The subject of a comparison, and the amount of its work.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The name of the subject.
    pub name: &'a str,
    /// The unit of work.
    pub unit: &'a str,
    /// The number of units that one time is.
    pub n_units: usize,
    /// The answer that the work must give.
    pub answer: i32,
}

/// The times of a contender.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the contender.
    pub name: String,
    /// The nanoseconds for a unit, at the median.
    pub ns: f64,
    /// Half the distance between the quartiles, as a share of the median.
    pub spread: f64,
    /// The median of the ratios to the first contender, round by round.
    pub ratio: f64,
}

/// Lets all contenders work in turns, `n_rounds` times.
///
/// # Panics
///
/// If somebody gives another answer.
pub fn compare(subject: Subject<'_>, contenders: &mut [Contender], n_rounds: usize) -> Vec<Row> {
    let n_times: Vec<u32> = contenders
        .iter_mut()
        .map(|contender| n_times(&subject, contender))
        .collect();
    let n_contenders = contenders.len();
    let mut rounds = vec![Times::default(); n_contenders];
    for round in 0..n_rounds {
        // What one leaves in the caches is the luck of the next, who is not always the same.
        for turn in 0..n_contenders {
            let index = match round % 2 {
                0 => (turn + round) % n_contenders,
                _ => (round + n_contenders - turn) % n_contenders,
            };
            let time = checked(&subject, &mut contenders[index], n_times[index]);
            rounds[index].push(time);
        }
    }
    let units = |index: usize| f64::from(n_times[index]) * subject.n_units as f64;
    let row = |(index, contender): (usize, &Contender)| {
        let times = &rounds[index];
        let pairs = times.all().iter().zip(rounds[0].all());
        let mut ratios: Vec<f64> = pairs
            .map(|(own, first)| own.as_secs_f64() / units(index) / first.as_secs_f64() * units(0))
            .collect();
        ratios.sort_by(f64::total_cmp);
        Row {
            name: contender.name.clone(),
            ns: times.median().as_secs_f64() * 1e9 / units(index),
            spread: times.spread(),
            ratio: ratios.get(ratios.len() / 2).copied().unwrap_or_default(),
        }
    };
    contenders.iter().enumerate().map(row).collect()
}

fn checked(subject: &Subject<'_>, contender: &mut Contender, n_times: u32) -> Duration {
    let sample = (contender.work)(n_times);
    let (name, who) = (subject.name, &contender.name);
    assert_eq!(sample.answer, subject.answer, "{name}: the answer of {who}");
    sample.time
}

/// Returns how many times fill a round.
fn n_times(subject: &Subject<'_>, contender: &mut Contender) -> u32 {
    checked(subject, contender, 1);
    let mut n_times = 1;
    loop {
        let time = checked(subject, contender, n_times);
        if time >= ROUND / 2 || n_times >= 1 << 20 {
            let share = ROUND.as_secs_f64() / time.as_secs_f64().max(1e-9);
            return (f64::from(n_times) * share).clamp(1.0, 1e6) as u32;
        }
        n_times *= 2;
    }
}
