//! Collectives among threads.

use std::thread;
use std::time::Duration;

use tfrt_async::ErrorCode;
use tfrt_dist::collective::local::{Communicator, group};
use tfrt_dist::collective::{Function, Operation, Order};

const SUM: Operation = Operation::AllReduce {
    function: Function::Sum,
    leaves: 4,
    order: Order::Tree,
};

/// Runs a function on each member of a group, in a thread each.
fn on_threads<R: Send>(n: usize, work: impl Fn(Communicator<f32>) -> R + Sync) -> Vec<R> {
    let members = group::<f32>(n, Duration::from_secs(30));
    thread::scope(|scope| {
        let threads = members
            .into_iter()
            .map(|member| scope.spawn(|| work(member)));
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[test]
fn threads_reduce_broadcast_and_gather() {
    let len = 10_000;
    let results = on_threads(4, |mut member| {
        let rank = member.rank() as f32;
        let (sum, _) = member
            .call(SUM, &[len], vec![vec![rank; len]], vec![0.0; len])
            .unwrap();
        assert!(sum.iter().all(|x| *x == 6.0));
        let sender = Operation::Broadcast { sender: 2 };
        let (sent, _) = member
            .call(sender, &[len], Vec::new(), vec![rank; len])
            .unwrap();
        assert!(sent.iter().all(|x| *x == 2.0));
        let gather = Operation::AllGather {
            axis: 0,
            any_shape: true,
        };
        let own = member.rank() + 1;
        member
            .call(gather, &[own], vec![vec![rank; own]], Vec::new())
            .unwrap()
    });
    let expected = vec![0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0];
    assert!(
        results
            .iter()
            .all(|result| *result == (expected.clone(), vec![10]))
    );
}

#[test]
fn a_member_that_goes_away_fails_the_others_by_name() {
    let errors = on_threads(3, |mut member| {
        if member.rank() == 1 {
            return None;
        }
        let inputs = match member.rank() {
            0 => vec![vec![0.0; 4]; 2],
            _ => vec![vec![0.0; 4]],
        };
        member.call(SUM, &[4], inputs, vec![0.0; 4]).err()
    });
    for error in errors.into_iter().flatten() {
        assert_eq!(error.code(), ErrorCode::Unavailable);
        assert_eq!(
            error.to_string(),
            "/job:thread/task:1: task /job:thread/task:1 is lost"
        );
    }
}

#[test]
fn what_does_not_fit_fails_on_all_members() {
    let errors = on_threads(2, |mut member| {
        let inputs = vec![vec![0.0; 4]; 2 - member.rank()];
        member.call(SUM, &[4], inputs, vec![0.0; 4]).unwrap_err()
    });
    for error in errors {
        assert_eq!(error.message(), "expected 2 inputs, found 1");
    }
}
