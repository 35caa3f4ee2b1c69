//! The search of a worker without tasks: how long it looks for work before it sleeps.
//!
//! A search is short, unless compute tasks are in flight, which may bring more. A network is loop after loop, and
//! between two of them a worker has nothing to do for as long as another takes for its last tile, or for what is not a
//! loop. If it slept, each loop would begin with a system call, and with some 50 microseconds on one thread less.
//!
//! A long search must not cost others anything. So it gives its processor away after each round, and ends once it has
//! lost it: a worker that is counted as searching and doesn't run keeps others from being woken. And it seldom asks
//! what is in flight, since that takes the counters out of the caches of those who work.

use std::time::Duration;

/// The length of a search: about twice what waking a worker would take.
const SHORT: Duration = Duration::from_micros(25);
/// The longest search while tasks are in flight.
const LONG: Duration = Duration::from_millis(1);
/// The time between two looks at whether tasks are in flight.
const ASKING_INTERVAL: Duration = Duration::from_micros(50);
/// The longest time that yielding the processor takes if no other thread takes it.
const LOST_TIME: Duration = Duration::from_micros(10);
/// The time of a round from which on a worker is taken to share its processor with others, which are better off if it
/// sleeps.
const AWAY_TIME: Duration = Duration::from_micros(50);
/// The number of searches that are short after such a round.
const SHORT_SEARCHES: u32 = 64;

/// One search, round after round.
#[derive(Debug)]
pub(super) struct Search {
    searched: Duration,
    ask_at: Duration,
    /// The number of searches that are to be short, this one included.
    short_searches: u32,
    /// Whether somebody took the processor when it was given away.
    lost: bool,
}

/// The next step of a search after a round in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Another round.
    Again,
    /// Another round, after the processor was yielded: whoever is to bring the work may be waiting for it.
    Yield,
    /// Give up.
    Sleep,
}

impl Search {
    /// Begins a search, of which so many are to be short.
    pub(super) fn new(short_searches: u32) -> Search {
        Search {
            searched: Duration::ZERO,
            ask_at: Duration::ZERO,
            short_searches,
            lost: false,
        }
    }

    /// Returns how many searches are to be short after this one.
    pub(super) fn short_searches_left(&self) -> u32 {
        self.short_searches.saturating_sub(1)
    }

    /// Returns the next step after a round in vain, when the search has taken `searched`. Asks sometimes whether there
    /// are tasks `in_flight`.
    pub(super) fn next(&mut self, searched: Duration, in_flight: impl FnOnce() -> bool) -> Next {
        let round = searched.saturating_sub(self.searched);
        self.searched = searched;
        if round > AWAY_TIME {
            self.short_searches = SHORT_SEARCHES + 1;
        }
        if searched <= SHORT {
            return Next::Again;
        }
        if self.short_searches > 0 || self.lost || searched > LONG {
            return Next::Sleep;
        }
        if searched >= self.ask_at {
            if !in_flight() {
                return Next::Sleep;
            }
            self.ask_at = searched + ASKING_INTERVAL;
        }
        Next::Yield
    }

    /// Notes that the processor was yielded, and was back after `away`.
    pub(super) fn yielded(&mut self, away: Duration) {
        self.lost |= away > LOST_TIME;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    /// Goes through rounds of `round_us` until the search ends: when that is in microseconds, and how often it asked.
    fn run(search: &mut Search, round_us: u64, in_flight_until_us: u64) -> (u64, u32) {
        let (mut at, mut n_asked) = (0, 0);
        loop {
            at += round_us;
            let next = search.next(us(at), || {
                n_asked += 1;
                at < in_flight_until_us
            });
            match next {
                Next::Again => assert!(at <= 25),
                Next::Yield => assert!(at > 25),
                Next::Sleep => return (at, n_asked),
            }
        }
    }

    #[test]
    fn search_is_short_without_tasks_in_flight() {
        assert_eq!(run(&mut Search::new(0), 1, 0), (26, 1));
    }

    #[test]
    fn search_is_long_while_tasks_are_in_flight_and_seldom_asks() {
        assert_eq!(run(&mut Search::new(0), 1, u64::MAX), (1001, 20));
        assert_eq!(run(&mut Search::new(0), 1, 100), (126, 3));
    }

    #[test]
    fn long_search_ends_once_the_processor_was_lost() {
        let mut search = Search::new(0);
        assert_eq!(search.next(us(30), || true), Next::Yield);
        search.yielded(us(10));
        assert_eq!(search.next(us(45), || true), Next::Yield);
        search.yielded(us(11));
        assert_eq!(search.next(us(60), || unreachable!()), Next::Sleep);
        assert_eq!(search.short_searches_left(), 0);
    }

    #[test]
    fn searches_are_short_after_the_processor_was_away() {
        let mut search = Search::new(0);
        assert_eq!(search.next(us(51), || unreachable!()), Next::Sleep);
        for left in (0..64).rev() {
            search = Search::new(search.short_searches_left());
            assert_eq!(run(&mut search, 1, u64::MAX), (26, 0));
            assert_eq!(search.short_searches_left(), left);
        }
        search = Search::new(search.short_searches_left());
        assert_eq!(run(&mut search, 1, u64::MAX).0, 1001);
    }
}
