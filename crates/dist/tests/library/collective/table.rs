//! The collectives of one task, event by event.

use std::time::Duration;

use tfrt_async::{Error, ErrorCode};
use tfrt_dist::collective::{
    Action, Announcement, Call, Collectives, Function, Key, Limits, Message, Operation, Order,
    Payload, Piece,
};
use tfrt_tensor::DType;

use super::simulator::task;

/// A number of bytes.
#[derive(Clone, Debug)]
struct Bytes(usize);

impl Payload for Bytes {
    fn len_bytes(&self) -> usize {
        self.0
    }
}

const SUM: Operation = Operation::AllReduce {
    function: Function::Sum,
    leaves: 3,
    order: Order::Tree,
};

fn key(instance: &str) -> Key {
    Key {
        group: "all".to_owned(),
        instance: instance.to_owned(),
    }
}

/// Returns a call of three members, which sum four numbers.
fn call(instance: &str) -> Call {
    Call {
        key: key(instance),
        members: (0..3).map(task).collect(),
        operation: SUM,
        dtype: DType::F32,
        extents: vec![4],
        result_extents: None,
        deadline: Duration::from_secs(1),
    }
}

fn table(me: usize) -> Collectives<Bytes> {
    let limits = Limits {
        early_messages: 3,
        early_bytes: 100,
        n_verdicts: 2,
        ..Limits::default()
    };
    Collectives::new(task(me), limits)
}

/// Returns the announcement that a task sends.
fn announcement() -> Announcement {
    let actions = table(1).begin(call("1")).unwrap();
    let announced = actions.into_iter().find_map(|(_, action)| match action {
        Action::Send {
            message: Message::Piece { announcement, .. },
            ..
        } => announcement,
        _ => None,
    });
    announced.unwrap()
}

/// Returns the message with which a member calls, and so many bytes of elements.
fn called(n_bytes: usize) -> Message<Bytes> {
    Message::Piece {
        announcement: Some(announcement()),
        piece: Piece::Part(0),
        data: Bytes(n_bytes),
    }
}

/// Returns actions as words: what is sent to whom, and how it ends.
fn told(actions: Vec<(Key, Action<Bytes>)>) -> Vec<String> {
    let told = actions.into_iter().map(|(_, action)| match action {
        Action::Send { to, message } => {
            let what = match message {
                Message::Announce(_) => "announce".to_owned(),
                Message::Piece { piece, .. } => format!("{piece:?}"),
                Message::Confirm => "confirm".to_owned(),
                Message::Ask { lost, .. } => format!("ask without {}", lost.len()),
                Message::Failed(error) => format!("failed: {error}"),
                Message::Completed => "completed".to_owned(),
            };
            format!("{} <- {what}", to.task)
        }
        Action::Reduce { values, .. } => format!("reduce {}", values.len()),
        Action::Done => "done".to_owned(),
        Action::Failed(error) => format!("failed: {error}"),
        _ => "other".to_owned(),
    });
    told.collect()
}

/// Brings a table to where it has its result and waits for others.
fn confirmed(me: usize) -> Collectives<Bytes> {
    let mut table = table(me);
    table.begin(call("1")).unwrap();
    let others: Vec<usize> = (0..3).filter(|other| *other != me).collect();
    assert_eq!(
        told(table.arrived(&task(others[0]), &key("1"), called(16))),
        [""; 0]
    );
    let actions = told(table.arrived(&task(others[1]), &key("1"), called(16)));
    let confirms = others.iter().map(|other| format!("{other} <- confirm"));
    let expected: Vec<String> = ["reduce 3".to_owned()]
        .into_iter()
        .chain(confirms)
        .collect();
    assert_eq!(actions, expected);
    table
}

#[test]
fn a_second_call_by_a_name_is_refused() {
    let mut table = table(0);
    assert_eq!(
        told(table.begin(call("1")).unwrap()),
        ["1 <- Part(0)", "2 <- Part(0)"]
    );
    let error = table.begin(call("1")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::AlreadyExists);
    let message =
        "there was a collective '1' of group 'all' already: each call needs a name of its own";
    assert_eq!(error.message(), message);
    // When it has ended, too.
    table.cancel(&key("1"), &Error::cancelled("enough"));
    assert_eq!(table.begin(call("1")).unwrap_err().message(), message);
}

#[test]
fn calls_that_concern_nobody_else_are_refused() {
    let mut stranger = table(7);
    let error = stranger.begin(call("1")).unwrap_err();
    assert_eq!(
        error.message(),
        "The current task /job:w/task:7 is not part of the collective group all"
    );
    let mut twice = call("1");
    twice.members.push(task(2));
    let error = table(0).begin(twice).unwrap_err();
    assert_eq!(
        error.message(),
        "/job:w/task:2 is twice a member of the group all"
    );
}

#[test]
fn a_call_that_makes_no_sense_fails_on_all() {
    let rows: [(Operation, DType, &[usize], &str); 6] = [
        (
            SUM,
            DType::String,
            &[4],
            "expected elements of one size, found str",
        ),
        (
            SUM,
            DType::I1,
            &[4],
            "expected real numbers to reduce, found i1",
        ),
        (
            SUM,
            DType::F32,
            &[1 << 40, 1 << 40],
            "expected a tensor that fits into memory, found extents [1099511627776, 1099511627776]",
        ),
        (
            Operation::Broadcast { sender: 3 },
            DType::F32,
            &[4],
            "expected a sender among the 3 members, found number 3",
        ),
        (
            Operation::AllGather {
                axis: 1,
                any_shape: true,
            },
            DType::F32,
            &[4],
            "expected an axis below the rank of the input, 1, found 1",
        ),
        (
            Operation::AllReduce {
                function: Function::Sum,
                leaves: 2,
                order: Order::Ring,
            },
            DType::F32,
            &[4],
            "a ring needs a leaf for each member: expected at least 3, found 2",
        ),
    ];
    for (operation, dtype, extents, expected) in rows {
        let call = Call {
            operation,
            dtype,
            extents: extents.to_vec(),
            ..call("1")
        };
        let failed = format!("failed: /job:w/task:0: {expected}");
        let sent = [1, 2].map(|other| format!("{other} <- {failed}"));
        let actions = told(table(0).begin(call).unwrap());
        assert_eq!(actions, [sent[0].clone(), sent[1].clone(), failed]);
    }
    let gather = Operation::AllGather {
        axis: 0,
        any_shape: false,
    };
    let call = Call {
        operation: gather,
        result_extents: Some(vec![11]),
        ..call("1")
    };
    let actions = told(table(0).begin(call).unwrap());
    assert!(
        actions[0].contains("Incorrect output dimension. "),
        "{actions:?}"
    );
}

#[test]
fn what_comes_early_is_kept_within_bounds() {
    let mut table = table(0);
    for instance in ["1", "2", "3"] {
        assert_eq!(
            told(table.arrived(&task(1), &key(instance), called(16))),
            [""; 0]
        );
    }
    assert_eq!(table.n_held(), (0, 3));
    // One message too many, and for another peer too many bytes.
    let refused = told(table.arrived(&task(1), &key("4"), called(16)));
    assert_eq!(
        refused,
        [
            "1 <- failed: /job:w/task:0: /job:w/task:0 holds 3 messages of /job:w/task:1 for collectives that it has not called, with 48 bytes, and takes no more"
        ]
    );
    let refused = told(table.arrived(&task(2), &key("5"), called(101)));
    assert!(refused[0].starts_with("2 <- failed: "), "{refused:?}");
    // What was refused fails when it is called; what was kept is used.
    let begun = told(table.begin(call("4")).unwrap());
    assert!(begun[0].starts_with("failed: "), "{begun:?}");
    table.begin(call("1")).unwrap();
    assert!(told(table.arrived(&task(2), &key("1"), called(16))).contains(&"reduce 3".to_owned()));
    // A task that is lost leaves nothing.
    table.lost(&task(1), &Error::unavailable("lost"));
    table.lost(&task(2), &Error::unavailable("lost"));
    let (_, n_early) = table.n_held();
    assert!(n_early <= 1, "{n_early}");
}

#[test]
fn elements_of_a_wrong_length_are_blamed_on_their_sender() {
    let mut table = table(0);
    table.begin(call("1")).unwrap();
    table.arrived(&task(1), &key("1"), Message::Announce(announcement()));
    table.arrived(&task(2), &key("1"), Message::Announce(announcement()));
    let piece = Message::Piece {
        announcement: None,
        piece: Piece::Part(0),
        data: Bytes(17),
    };
    let actions = told(table.arrived(&task(2), &key("1"), piece));
    let expected = "failed: /job:w/task:2: all-reduce '1' of group 'all': /job:w/task:2 sent 17 bytes of Part(0), where 16 were expected";
    assert_eq!(actions[2], expected);
    assert_eq!(actions[0], format!("1 <- {expected}"));
}

#[test]
fn a_member_that_is_done_tells_those_that_ask() {
    let mut table = confirmed(0);
    table.arrived(&task(1), &key("1"), Message::Confirm);
    let actions = told(table.arrived(&task(2), &key("1"), Message::Confirm));
    assert_eq!(actions, ["done"]);
    let ask = || Message::Ask {
        lost: vec![task(2)],
        error: Error::unavailable("lost"),
    };
    assert_eq!(
        told(table.arrived(&task(1), &key("1"), ask())),
        ["1 <- completed"]
    );
    // How it ended is forgotten behind others.
    for instance in ["2", "3"] {
        table.begin(call(instance)).unwrap();
        table.cancel(&key(instance), &Error::cancelled("enough"));
    }
    assert_eq!(told(table.arrived(&task(1), &key("1"), ask())), [""; 0]);
}

#[test]
fn who_has_confirmed_asks_before_it_fails() {
    let mut table = confirmed(0);
    let reason = Error::unavailable("task /job:w/task:2 is lost");
    assert_eq!(told(table.lost(&task(2), &reason)), ["1 <- ask without 1"]);
    // A confirmation that comes late does not count.
    assert_eq!(
        told(table.arrived(&task(1), &key("1"), Message::Confirm)),
        [""; 0]
    );
    let ask = Message::Ask {
        lost: vec![task(2)],
        error: reason.clone(),
    };
    let actions = told(table.arrived(&task(1), &key("1"), ask));
    assert_eq!(
        actions.last().unwrap(),
        "failed: /job:w/task:2: task /job:w/task:2 is lost"
    );
    // If the other was done, so is this one.
    let mut table = confirmed(0);
    table.lost(&task(2), &reason);
    assert_eq!(
        told(table.arrived(&task(1), &key("1"), Message::Completed)),
        ["done"]
    );
    // If it says nothing, there is an end to it.
    let mut table = confirmed(0);
    table.lost(&task(2), &reason);
    assert_eq!(told(table.expire(Duration::from_secs(1))), [""; 0]);
    let deadline = table.next_deadline().unwrap();
    assert_eq!(deadline, Duration::from_secs(4));
    let actions = told(table.expire(deadline));
    let expected = "failed: /job:w/task:1: all-reduce '1' of group 'all' was not done in time, it waited for /job:w/task:1";
    assert_eq!(actions.last().unwrap(), expected);
}

#[test]
fn a_member_that_is_lost_already_fails_a_call_at_once() {
    let mut table = table(0);
    table.lost(&task(1), &Error::unavailable("task /job:w/task:1 is lost"));
    let actions = told(table.begin(call("1")).unwrap());
    assert_eq!(
        actions.last().unwrap(),
        "failed: /job:w/task:1: task /job:w/task:1 is lost"
    );
    table.back(&task(1));
    let actions = told(table.begin(call("2")).unwrap());
    assert_eq!(actions, ["1 <- Part(0)", "2 <- Part(0)"]);
}
