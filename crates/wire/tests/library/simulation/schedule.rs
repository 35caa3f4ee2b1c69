//! [`Schedule`]: what tasks do, and what is done to them, each at its time.

use std::fmt;

/// Random numbers of a seed.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// A task asks another, several times at once.
    Request {
        from: usize,
        to: usize,
        len: u32,
        times: u32,
    },
    /// A task gives up what it asked last.
    Cancel { from: usize },
    /// A task sends a value.
    Send { from: usize, to: usize, len: u32 },
    /// A task gives up the value that it sent last.
    Abort { from: usize },
    /// The connection of two tasks breaks; they hear of it, or don't.
    Cut {
        one: usize,
        other: usize,
        loud: bool,
    },
    /// Nothing gets from one task to another for a time.
    Block { from: usize, to: usize, ms: u64 },
    /// A task stands still for a time.
    Pause { task: usize, ms: u64 },
    /// A task dies, and is started anew after a time.
    Restart { task: usize, ms: u64, loud: bool },
    /// A task stands still for a time, and another start of it takes its place at once.
    Replace { task: usize, ms: u64 },
}

/// How bad a network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Nothing: everything must succeed.
    Calm,
    /// Connections break, and frames come twice or changed: everything must succeed all the same.
    Rough,
    /// Anything: tasks die.
    Storm,
}

/// Actions with their times.
#[derive(Clone)]
pub struct Schedule {
    pub seed: u64,
    pub n_tasks: usize,
    pub weather: Weather,
    pub has_secret: bool,
    /// The most time that a frame takes.
    pub max_delay_us: u64,
    /// Times in milliseconds.
    pub actions: Vec<(u64, Action)>,
}

impl Schedule {
    /// Returns the schedule of a seed.
    pub fn of(seed: u64) -> Schedule {
        let mut random = Random::new(seed);
        let random = &mut random;
        let n_tasks = 2 + random.below(3) as usize;
        let weather = match random.below(8) {
            0 => Weather::Calm,
            1..4 => Weather::Rough,
            _ => Weather::Storm,
        };
        let (has_secret, n_actions) = (random.chance(50), 1 + random.below(60));
        let max_delay_us = [10, 1_000, 20_000, 200_000][random.below(4) as usize];
        let span_ms = [10, 1_000, 30_000][random.below(3) as usize];
        let action = |_| {
            let at_ms = random.below(span_ms);
            (at_ms, Action::random(random, n_tasks, weather))
        };
        let mut actions: Vec<(u64, Action)> = (0..n_actions).map(action).collect();
        actions.sort_by_key(|(at_ms, _)| *at_ms);
        Schedule {
            seed,
            n_tasks,
            weather,
            has_secret,
            max_delay_us,
            actions,
        }
    }
}

impl Action {
    fn random(random: &mut Random, n_tasks: usize, weather: Weather) -> Action {
        let task = random.below(n_tasks as u64) as usize;
        let other = (task + 1 + random.below(n_tasks as u64 - 1) as usize) % n_tasks;
        let n = match weather {
            Weather::Calm => 70,
            Weather::Rough => 85,
            Weather::Storm => 100,
        };
        let ms = match random.below(5) {
            // About as long as a lease, which ends on one side before it does on the other.
            0 => 9_000 + random.below(5_000),
            kind => 1 + random.below([10, 500, 4_000, 15_000][kind as usize - 1]),
        };
        let loud = random.chance(60);
        match random.below(n) {
            0..35 => Action::Request {
                from: task,
                to: other,
                len: 8 + random.below(2_000) as u32,
                times: 1 + random.below(4) as u32,
            },
            35..40 => Action::Cancel { from: task },
            40..65 => {
                let most = [1, 5_000, 80_000, 3_500_000][random.below(4) as usize];
                let len = random.below(most) as u32;
                Action::Send {
                    from: task,
                    to: other,
                    len,
                }
            }
            65..70 => Action::Abort { from: task },
            70..82 => Action::Cut {
                one: task,
                other,
                loud,
            },
            82..85 => Action::Block {
                from: task,
                to: other,
                ms: ms.min(1_200),
            },
            85..89 => Action::Block {
                from: task,
                to: other,
                ms,
            },
            89..93 => Action::Pause { task, ms },
            93..98 => Action::Restart { task, ms, loud },
            _ => Action::Replace { task, ms },
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} tasks, {:?}, frames take up to {} us:",
            self.n_tasks, self.weather, self.max_delay_us
        )?;
        for (at_ms, action) in &self.actions {
            writeln!(f, "{at_ms:>8} ms: {action:?}")?;
        }
        Ok(())
    }
}

/// Returns a schedule with fewer actions that breaks something as well, and what that breaks.
pub fn shrunk(
    schedule: Schedule,
    broken: String,
    run: impl Fn(&Schedule) -> Result<(), String>,
) -> (Schedule, String) {
    let (mut least, mut broken) = (schedule, broken);
    let mut n_taken = least.actions.len().div_ceil(2);
    while n_taken > 0 {
        let mut at = 0;
        while at < least.actions.len() {
            let mut smaller = least.clone();
            let end = (at + n_taken).min(smaller.actions.len());
            smaller.actions.drain(at..end);
            match run(&smaller) {
                Err(text) => (least, broken) = (smaller, text),
                Ok(()) => at += n_taken,
            }
        }
        n_taken /= 2;
    }
    (least, broken)
}
