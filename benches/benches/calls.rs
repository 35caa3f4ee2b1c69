//! Calls, loops, synchronous functions and asynchronous kernels on one thread: nanoseconds for a
//! kernel, a call or a turn.
//!
//! Beside calls stands the same function in Rust, which costs what no runtime can do without.

#![forbid(unsafe_code)]

use std::hint::black_box;

use tfrt_benches::cases::{Case, NAMES};
use tfrt_benches::compare::{Contender, Subject};
use tfrt_benches::measure::Clock;
use tfrt_benches::ours::{Bound, Order, Ours, Threads};
use tfrt_benches::table::Bench;
use tfrt_host::RequestContext;

fn main() {
    let bench = Bench::from_environment();
    bench.begin("calls and loops on one thread; processor time");
    for name in NAMES.into_iter().filter(|name| bench.is_wanted(name)) {
        let case = Case::find(name).expect("each name has a case");
        if case.graph.is_some() {
            continue;
        }
        let mut contenders = vec![Ours::contender(
            &case,
            Order::Static,
            Threads::Caller,
            Clock::Process,
        )];
        contenders.extend(peers(&case));
        let subject = Subject {
            name,
            unit: case.unit,
            n_units: case.n_units,
            answer: case.answer,
        };
        bench.compare(subject, &mut contenders);
    }
}

/// Returns the peers that do the work of a case.
fn peers(case: &Case) -> Vec<Contender> {
    let argument = case.arguments[0];
    let here = |name: &str, work: fn(i32) -> i32| {
        Contender::new(name, Clock::Process, move || work(black_box(argument)))
    };
    match case.name {
        "synchronous" | "async_chain" | "async_fan" => graphs(case.name),
        "empty" => vec![
            here("call through a pointer", black_box),
            bound(case),
            new_request(case),
        ],
        "call" => vec![here("Rust", |x| {
            (0..1_000).fold(x, |x, _| black_box(next as fn(i32) -> i32)(x))
        })],
        "fib" => {
            let mut peers = vec![here("Rust", fib)];
            peers.extend(joins(argument));
            peers
        }
        "while" => vec![here("Rust", |n| {
            let (mut i, mut sum) = (n, 0i32);
            while 1 <= i {
                sum = black_box(sum.wrapping_add(black_box(i)));
                i -= 1;
            }
            sum
        })],
        "repeat" => vec![here("Rust", |n| (0..n).fold(n, |x, _| black_box(x + 1)))],
        _ => Vec::new(),
    }
}

#[inline(never)]
fn next(x: i32) -> i32 {
    x.wrapping_add(1)
}

#[inline(never)]
fn fib(n: i32) -> i32 {
    if n <= 1 {
        return n;
    }
    black_box(fib(n - 1)) + black_box(fib(n - 2))
}

/// Returns the case's function, bound.
fn bound(case: &Case) -> Contender {
    let mut bound = Ours::new(&case.text, Order::Static, Threads::Caller).bind();
    let arguments = case.arguments.clone();
    Contender::new(Bound::NAME, Clock::Process, move || {
        bound.call(&arguments).expect("the case has an answer")
    })
}

/// Returns the case's function in a request of its own for each call.
fn new_request(case: &Case) -> Contender {
    let ours = Ours::new(&case.text, Order::Static, Threads::Caller);
    let arguments = case.arguments.clone();
    Contender::new("tfrt, in a new request", Clock::Process, move || {
        let ours = ours.in_request(&RequestContext::new(ours.host()));
        ours.call(&arguments).expect("the case has an answer")
    })
}

/// Returns the peers that can run the case's graph.
#[cfg(feature = "peers")]
fn graphs(name: &str) -> Vec<Contender> {
    use tfrt_benches::cases::graph;
    use tfrt_benches::peers::shared::Body::Add;
    use tfrt_benches::peers::{loops, spawning};

    let graph = graph(if name == "async_fan" { "fan" } else { "chain" });
    let graph = graph.expect("they are graphs' names");
    if name == "synchronous" {
        return vec![loops::plain_loop(&graph, Add, Clock::Process)];
    }
    vec![
        spawning::tokio(&graph, Add, None),
        spawning::tokio(&graph, Add, Some(1)),
        spawning::async_executor(&graph, Add, 1),
        spawning::rayon(&graph, Add, 1),
    ]
}

/// Returns the recursion by `rayon`, in which either half may run elsewhere.
#[cfg(feature = "peers")]
fn joins(argument: i32) -> Option<Contender> {
    fn fib(n: i32) -> i32 {
        if n <= 1 {
            return n;
        }
        let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
        black_box(a) + black_box(b)
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    let pool = pool.build().expect("a thread can be started");
    Some(Contender::new("rayon join", Clock::Process, move || {
        pool.install(|| fib(black_box(argument)))
    }))
}

#[cfg(not(feature = "peers"))]
fn joins(_: i32) -> Option<Contender> {
    None
}

#[cfg(not(feature = "peers"))]
fn graphs(_: &str) -> Vec<Contender> {
    Vec::new()
}
