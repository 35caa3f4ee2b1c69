//! [`Route`]: the way in which a call runs. Whatever chooses among ways is in this file.
//!
//! A way is chosen by what was found of the function at load ([`Manner`]), by the queue and the limits of the request,
//! by what earlier calls have cost ([`cost`](super::cost)), and by whether the arguments are there. The test of this
//! file prints the table of all choices.

use tfrt_async::AnyAsyncValue;

use super::frame::Frame;
use super::inline;
use super::plan::function::{FunctionPlan, Manner};
use crate::request::RequestContext;

/// The way in which a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Its kernels run one after the other, in the order that was found at load, to the end ([`inline`](super::inline)).
    InOrder,
    /// As [`InOrder`](Route::InOrder), as long as all results are there. From the first that is to come on it is counted.
    TryInOrder,
    /// As [`InOrder`](Route::InOrder), by a task, when its arguments are there.
    InOrderLater,
    /// Each kernel runs when its operands are there ([`frame`](super::frame)).
    Counted,
}

/// The facts that a choice depends on. They are asked for only where they matter.
trait Facts {
    fn manner(&self) -> Manner;
    /// Whether the function is marked synchronous.
    fn is_synchronous(&self) -> bool;
    /// Whether a call of the function may make another.
    fn is_recursive(&self) -> bool;
    /// Whether earlier calls have shown that there is too little to do for several threads.
    fn is_small(&self) -> bool;
    /// Whether this call is one of those that try to run in order. Asked once for each call.
    fn is_tried(&self) -> bool;
    /// Whether the host asks for counting.
    fn counts_always(&self) -> bool;
    /// The number of calls around this one.
    fn depth(&self) -> u32;
    fn n_threads(&self) -> usize;
}

/// A call that is to begin.
struct Site<'a> {
    topology: &'a FunctionPlan,
    request: &'a RequestContext,
    depth: u32,
}

impl Facts for Site<'_> {
    #[inline]
    fn manner(&self) -> Manner {
        self.topology.manner
    }

    #[inline]
    fn is_synchronous(&self) -> bool {
        self.topology.is_synchronous()
    }

    #[inline]
    fn is_recursive(&self) -> bool {
        self.topology.is_recursive
    }

    #[inline]
    fn is_small(&self) -> bool {
        self.topology.cost.is_small(self.topology.n_kernels())
    }

    #[inline]
    fn is_tried(&self) -> bool {
        inline::may_run() && self.topology.is_tried()
    }

    #[inline]
    fn counts_always(&self) -> bool {
        self.request.host().counts_always()
    }

    #[inline]
    fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    fn n_threads(&self) -> usize {
        self.request.queue().parallelism()
    }
}

/// Chooses the way of a call on this thread, which so many calls are around.
#[inline(always)]
pub(crate) fn of_call(
    topology: &FunctionPlan,
    request: &RequestContext,
    depth: u32,
    arguments: &[AnyAsyncValue],
) -> Route {
    let site = Site {
        topology,
        request,
        depth,
    };
    let is_given = arguments.iter().all(AnyAsyncValue::is_settled);
    choose(&site, is_given)
}

/// Chooses the way of a call that goes on while its caller does, which so many calls are around.
pub(crate) fn of_spawned(
    topology: &FunctionPlan,
    request: &RequestContext,
    depth: u32,
    arguments: &[AnyAsyncValue],
) -> Route {
    let site = Site {
        topology,
        request,
        depth,
    };
    let is_given = arguments.iter().all(AnyAsyncValue::is_settled);
    choose_spawned(&site, is_given)
}

#[inline(always)]
fn choose(facts: &impl Facts, is_given: bool) -> Route {
    match is_given {
        true if runs_in_order(facts) => Route::InOrder,
        true if !facts.counts_always() && facts.is_tried() => Route::TryInOrder,
        false if facts.is_synchronous() && runs_in_order(facts) => Route::InOrderLater,
        _ => Route::Counted,
    }
}

fn choose_spawned(facts: &impl Facts, is_given: bool) -> Route {
    match is_given {
        // What is synchronous ends before its caller goes on.
        true if facts.is_synchronous() => Route::InOrder,
        true if runs_in_order(facts) => Route::InOrderLater,
        false if facts.is_synchronous() => Route::InOrderLater,
        _ => Route::Counted,
    }
}

/// Returns whether a call runs in order once its arguments are there.
#[inline(always)]
fn runs_in_order(facts: &impl Facts) -> bool {
    match facts.manner() {
        Manner::Counted => false,
        _ if facts.is_synchronous() => true,
        _ if facts.counts_always() => false,
        Manner::Ordered => true,
        Manner::Alone if facts.depth() > 0 => false,
        _ if facts.n_threads() == 1 => true,
        // Its streams would be handed over again and again, down to the smallest calls.
        Manner::OneThread if facts.is_recursive() => true,
        // Several threads have something to do with several streams, if there is much to do.
        _ => facts.is_small(),
    }
}

/// Returns whether a call made by a kernel of a call in order can run in order, too, on the same thread.
#[inline(always)]
pub(super) fn follows_in_order(callee: &FunctionPlan) -> bool {
    callee.manner >= Manner::OneThread
}

/// Returns whether somebody asks what calls of a function cost: whether its streams are worth several threads.
#[inline]
pub(super) fn is_timed(topology: &FunctionPlan, request: &RequestContext) -> bool {
    matches!(topology.manner, Manner::Alone | Manner::OneThread)
        && request.queue().parallelism() > 1
}

/// Where the ready kernels of a counted call run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// All kernels run here: there is one thread, and nobody can see their order.
    One,
    /// Kernels of other streams belong elsewhere.
    Several,
    /// Kernels of other streams belong to other threads. Those that only begin something run here: to hand one over
    /// costs more than it does, and its task goes to other threads anyway.
    OnThreads,
}

impl Streams {
    pub(super) fn of(frame: &Frame) -> Streams {
        if frame.shape().has_one_stream() {
            return Streams::One;
        }
        match frame.request().queue().parallelism() {
            1 if frame.topology().is_silent() => Streams::One,
            // What no chain orders comes out as in the original runtime.
            1 => Streams::Several,
            // Where size matters most, there is no third way.
            _ if cfg!(tfrt_for_size) => Streams::Several,
            _ => Streams::OnThreads,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// Facts that a test makes up.
    #[derive(Clone, Copy)]
    struct Said {
        manner: Manner,
        is_synchronous: bool,
        counts_always: bool,
        depth: u32,
        n_threads: usize,
        is_recursive: bool,
        is_small: bool,
        is_tried: bool,
    }

    impl Facts for Said {
        fn manner(&self) -> Manner {
            self.manner
        }

        fn is_synchronous(&self) -> bool {
            self.is_synchronous
        }

        fn is_recursive(&self) -> bool {
            self.is_recursive
        }

        fn is_small(&self) -> bool {
            self.is_small
        }

        fn is_tried(&self) -> bool {
            self.is_tried
        }

        fn counts_always(&self) -> bool {
            self.counts_always
        }

        fn depth(&self) -> u32 {
            self.depth
        }

        fn n_threads(&self) -> usize {
            self.n_threads
        }
    }

    const PLAIN: Said = Said {
        manner: Manner::Counted,
        is_synchronous: false,
        counts_always: false,
        depth: 0,
        n_threads: 1,
        is_recursive: false,
        is_small: false,
        is_tried: false,
    };

    /// Returns the ways of a call with its arguments and without, and of one that is spawned, with and without.
    fn ways(said: Said) -> String {
        let ways = [true, false].map(|is_given| choose(&said, is_given));
        let spawned = [true, false].map(|is_given| choose_spawned(&said, is_given));
        let mut all = String::new();
        for way in ways.iter().chain(&spawned) {
            write!(all, " {:<13}", format!("{way:?}")).unwrap();
        }
        all
    }

    #[test]
    fn table_of_choices() {
        let mut table = format!(
            "{:<33}| {:<13} {:<13} {:<13} without\n",
            "a call", "with arguments", "without", "spawned, with"
        );
        let mut row = |what: &str, said: Said| {
            writeln!(table, "{what:<33}|{}", ways(said).trim_end()).unwrap();
        };
        for manner in [Manner::Ordered, Manner::OneThread, Manner::Alone] {
            let said = Said { manner, ..PLAIN };
            let name = format!("{manner:?}");
            row(&format!("{name}, one thread"), said);
            row(&format!("{name}, called"), Said { depth: 1, ..said });
            let several = Said {
                n_threads: 2,
                ..said
            };
            row(&format!("{name}, threads"), several);
            let small = Said {
                is_small: true,
                ..several
            };
            row(&format!("{name}, threads, small"), small);
            let recursive = Said {
                is_recursive: true,
                ..several
            };
            row(&format!("{name}, threads, recursive"), recursive);
            let always = Said {
                counts_always: true,
                ..said
            };
            row(&format!("{name}, always counting"), always);
            let synchronous = Said {
                is_synchronous: true,
                ..always
            };
            row(&format!("{name}, synchronous"), synchronous);
        }
        row("Counted", PLAIN);
        let synchronous = Said {
            is_synchronous: true,
            ..PLAIN
        };
        row("Counted, synchronous", synchronous);
        let tried = Said {
            is_tried: true,
            ..PLAIN
        };
        row("Counted, tried", tried);
        let always = Said {
            counts_always: true,
            ..tried
        };
        row("Counted, tried, always counting", always);
        assert_eq!(table, TABLE, "now:\n{table}");
    }

    const TABLE: &str = "\
a call                           | with arguments without       spawned, with without
Ordered, one thread              | InOrder       Counted       InOrderLater  Counted
Ordered, called                  | InOrder       Counted       InOrderLater  Counted
Ordered, threads                 | InOrder       Counted       InOrderLater  Counted
Ordered, threads, small          | InOrder       Counted       InOrderLater  Counted
Ordered, threads, recursive      | InOrder       Counted       InOrderLater  Counted
Ordered, always counting         | Counted       Counted       Counted       Counted
Ordered, synchronous             | InOrder       InOrderLater  InOrder       InOrderLater
OneThread, one thread            | InOrder       Counted       InOrderLater  Counted
OneThread, called                | InOrder       Counted       InOrderLater  Counted
OneThread, threads               | Counted       Counted       Counted       Counted
OneThread, threads, small        | InOrder       Counted       InOrderLater  Counted
OneThread, threads, recursive    | InOrder       Counted       InOrderLater  Counted
OneThread, always counting       | Counted       Counted       Counted       Counted
OneThread, synchronous           | InOrder       InOrderLater  InOrder       InOrderLater
Alone, one thread                | InOrder       Counted       InOrderLater  Counted
Alone, called                    | Counted       Counted       Counted       Counted
Alone, threads                   | Counted       Counted       Counted       Counted
Alone, threads, small            | InOrder       Counted       InOrderLater  Counted
Alone, threads, recursive        | Counted       Counted       Counted       Counted
Alone, always counting           | Counted       Counted       Counted       Counted
Alone, synchronous               | InOrder       InOrderLater  InOrder       InOrderLater
Counted                          | Counted       Counted       Counted       Counted
Counted, synchronous             | Counted       Counted       InOrder       InOrderLater
Counted, tried                   | TryInOrder    Counted       Counted       Counted
Counted, tried, always counting  | Counted       Counted       Counted       Counted
";
}
