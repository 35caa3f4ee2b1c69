//! `--allocator`: the allocator of a run, and its findings when all is over.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tfrt::HostAllocator;
use tfrt::asynchronous::{Counters, SystemAllocator, counters};
use tfrt::host::memory::{FixedSizeAllocator, ProfiledAllocator};

use crate::commands::print_line;
use crate::console::Console;
use crate::failure::Failure;
use crate::options::AllocatorOption;

/// The allocator of one run.
pub struct Allocator {
    kind: Kind,
    /// The counters before the run.
    before: Counters,
}

enum Kind {
    Plain(Arc<dyn HostAllocator>),
    Profiled(Arc<ProfiledAllocator>),
    LeakCheck(Arc<ProfiledAllocator>),
    /// An allocator with so many bytes.
    Fixed(Arc<FixedSizeAllocator>, usize),
}

impl Allocator {
    /// Makes the allocator of an option.
    pub fn new(option: AllocatorOption) -> Allocator {
        let system = Arc::new(SystemAllocator::new());
        let kind = match option {
            AllocatorOption::System => Kind::Plain(system),
            AllocatorOption::Profiled => Kind::Profiled(Arc::new(ProfiledAllocator::new(system))),
            AllocatorOption::LeakCheck => Kind::LeakCheck(Arc::new(ProfiledAllocator::new(system))),
            AllocatorOption::Fixed(bytes) => {
                let allocator = FixedSizeAllocator::new(system, bytes, log);
                Kind::Fixed(Arc::new(allocator), bytes)
            }
        };
        let before = counters();
        Allocator { kind, before }
    }

    /// Returns the allocator for the host.
    pub fn for_host(&self) -> Arc<dyn HostAllocator> {
        match &self.kind {
            Kind::Plain(allocator) => allocator.clone(),
            Kind::Profiled(allocator) | Kind::LeakCheck(allocator) => allocator.clone(),
            Kind::Fixed(allocator, _) => allocator.clone(),
        }
    }

    /// Returns how many bytes there are, if that was too few.
    pub fn exhausted(&self) -> Option<usize> {
        match &self.kind {
            Kind::Fixed(allocator, bytes) if allocator.refusals() > 0 => Some(*bytes),
            _ => None,
        }
    }

    /// Reports the findings of the allocator; returns whether something leaked.
    ///
    /// All that took memory must be gone.
    pub fn finish(&self, quiet: bool, console: &Console) -> Result<bool, Failure> {
        let print = |line: &str| {
            if quiet {
                console.say(&format!("{line}\n"));
                return Ok(());
            }
            print_line(line)
        };
        match &self.kind {
            Kind::Plain(_) | Kind::Fixed(..) => Ok(false),
            Kind::Profiled(allocator) => {
                print(&allocator.profile().to_string())?;
                Ok(false)
            }
            Kind::LeakCheck(allocator) => {
                let profile = allocator.profile();
                let now = counters();
                let n_values = now.live_cells.saturating_sub(self.before.live_cells);
                if profile.current_allocations == 0 && n_values == 0 {
                    return Ok(false);
                }
                print(&profile.to_string())?;
                let n_bytes = now
                    .live_cell_bytes
                    .saturating_sub(self.before.live_cell_bytes);
                print(&format!(
                    "Memory leak detected: {} alive allocations, {} alive bytes",
                    profile.current_allocations + n_values,
                    profile.current_bytes + n_bytes
                ))?;
                Ok(true)
            }
        }
    }
}

/// Logs in the form of the original: `I DATE TIME THREAD FILE:LINE] MESSAGE`, in UTC.
fn log(message: &str) {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since_epoch.unwrap_or_default();
    let (month, day) = month_and_day(now.as_secs() / 86_400);
    let second = now.as_secs() % 86_400;
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let line = if message.starts_with("Freeing") {
        84
    } else {
        61
    };
    let text = format!(
        "I {month:02}/{day:02} {:02}:{:02}:{:02}.{:06} {thread:>7} test_fixed_size_allocator.cc:{line}] {message}\n",
        second / 3600,
        second / 60 % 60,
        second % 60,
        now.subsec_micros(),
    );
    // Nothing can be done if standard error is gone.
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), text.as_bytes());
}

/// Returns the month and the day of a day since 1970, both from 1, in the Gregorian calendar.
fn month_and_day(days: u64) -> (u64, u64) {
    // Counted from the first of March of the year 0, so that leap days come last: eras of 400
    // years have 146,097 days.
    let day_of_era = (days + 719_468) % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (month, day)
}

#[cfg(test)]
mod tests {
    use super::month_and_day;

    #[test]
    fn days_have_dates() {
        for (days, date) in [
            (0, (1, 1)),
            (58, (2, 28)),
            (59, (3, 1)),
            (789, (2, 29)),
            (790, (3, 1)),
            (11_016, (2, 29)),
            (20_453, (12, 31)),
        ] {
            assert_eq!(month_and_day(days), date, "{days}");
        }
    }
}
