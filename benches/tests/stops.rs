//! Tests that stop the defended programs in their middle: what is fast must also fail.
//!
//! One kernel of each program is exchanged for `bench.trip`, which fails or cancels its request
//! when half of the work is done. On one thread and on two, in both orders, the answer is then that
//! error; and the same program answers right in the next request.

use tfrt_benches::cases::{Case, NAMES};
use tfrt_benches::graph::Kernels;
use tfrt_benches::kernels::{Stop, Trip};
use tfrt_benches::ours::{Order, Ours, Threads, bytes_of};
use tfrt_host::{Error, ErrorCode, RequestContext};

const HOSTS: [(Order, Threads); 5] = [
    (Order::Static, Threads::Caller),
    (Order::Static, Threads::CallerAnd(1)),
    (Order::Static, Threads::Workers(2)),
    (Order::Dynamic, Threads::Caller),
    (Order::Dynamic, Threads::Workers(2)),
];

/// A program with the kernel in it, and how often that runs before it stops the run.
struct Stopped {
    text: String,
    n_before: u32,
}

fn stopped(case: &Case) -> Option<Stopped> {
    const TRIP: &str = "\"bench.trip\"";
    let graph = |of: &str, kernels: &Kernels| {
        let graph = tfrt_benches::cases::graph(of).expect("it is a graph's name");
        let middle = graph.n_nodes() as u32 / 2;
        let kernels = Kernels {
            at: Some((middle, "bench.trip")),
            ..kernels.clone()
        };
        Stopped {
            text: graph.text(&kernels),
            n_before: 0,
        }
    };
    let body = |plain: &str, n_before| Stopped {
        text: case.text.replacen(
            &format!("tfrt.add.i32 {plain}"),
            &format!("{TRIP}({plain}) : (i32, i32) -> i32"),
            1,
        ),
        n_before,
    };
    Some(match case.name {
        "synchronous" => graph("chain", &Kernels::SYNCHRONOUS),
        "async_chain" => graph("chain", &Kernels::ASYNCHRONOUS),
        "async_fan" => graph("fan", &Kernels::ASYNCHRONOUS),
        "call" => body("%x, %one", 500),
        "fib" => body("%a, %b", 5_000),
        "while" => body("%sum, %i", 500),
        "repeat" => body("%n, %one", 500),
        // It has no kernel.
        "empty" => return None,
        name => graph(name, &Kernels::PLAIN),
    })
}

/// Calls in a request that is stopped.
fn stop(ours: &Ours, case: &Case, n_before: u32, stop: Stop) -> Result<i32, Error> {
    let request = RequestContext::builder(ours.host()).data(Trip::after(n_before, stop));
    let request = request.build();
    let answer = ours.in_request(&request).call(&case.arguments);
    let trip = request.data::<Trip>().expect("it was given");
    assert!(trip.is_over(), "{}: the kernel has run", case.name);
    answer
}

#[test]
fn error_or_cancellation_in_the_middle_is_the_answer() {
    for name in NAMES {
        let case = Case::find(name).expect("each name has a case");
        let Some(stopped) = stopped(&case) else {
            continue;
        };
        let bytes = bytes_of(&stopped.text);
        for (order, threads) in HOSTS {
            let what = format!("{name}, {order}, {threads:?}");
            let ours = Ours::open(bytes.clone(), order, threads);
            let error = stop(&ours, &case, stopped.n_before, Stop::Fail).expect_err(&what);
            assert_eq!(error.code(), ErrorCode::Unknown, "{what}");
            assert_eq!(error.message(), "tripped", "{what}");
            assert_eq!(error.kernel(), Some("bench.trip"), "{what}");
            assert!(error.location().is_some(), "{what}");
            let error = stop(&ours, &case, stopped.n_before, Stop::Cancel).expect_err(&what);
            assert_eq!(error.code(), ErrorCode::Cancelled, "{what}");
            let next = RequestContext::new(ours.host());
            let answer = ours.in_request(&next).call(&case.arguments).ok();
            assert_eq!(answer, Some(case.answer), "{what}");
        }
    }
}

#[test]
fn request_that_was_cancelled_before_runs_no_kernel() {
    for name in NAMES {
        let case = Case::find(name).expect("each name has a case");
        let Some(stopped) = stopped(&case) else {
            continue;
        };
        let ours = Ours::new(&stopped.text, Order::Static, Threads::Caller);
        let request = RequestContext::builder(ours.host()).data(Trip::after(0, Stop::Fail));
        let request = request.build();
        request.cancel();
        let answer = ours.in_request(&request).call(&case.arguments);
        let error = answer.expect_err(name);
        assert_eq!(error.code(), ErrorCode::Cancelled, "{name}");
        let trip = request.data::<Trip>().expect("it was given");
        assert!(!trip.is_over(), "{name}");
    }
}
