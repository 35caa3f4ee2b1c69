//! Messages as bytes.

use tfrt_async::Error;
use tfrt_dist::collective::head::{read, write};
use tfrt_dist::collective::{Announcement, Function, Key, Message, Operation, Order, Piece};
use tfrt_tensor::DType;

use super::simulator::task;

fn key() -> Key {
    Key {
        group: "all".to_owned(),
        instance: "step 7".to_owned(),
    }
}

fn announcements() -> Vec<Announcement> {
    let operations = [
        Operation::AllReduce {
            function: Function::Mean,
            leaves: 8,
            order: Order::Ring,
        },
        Operation::Broadcast { sender: 3 },
        Operation::AllGather {
            axis: 1,
            any_shape: true,
        },
    ];
    let announcement = |operation| Announcement {
        n_members: 4,
        members: 0x1234_5678_9abc_def0,
        operation,
        dtype: DType::Bf16,
        extents: vec![3, 0, 1 << 40],
    };
    operations.into_iter().map(announcement).collect()
}

/// Returns a message of each kind; a number stands for elements.
fn messages() -> Vec<Message<u32>> {
    let error = Error::data_loss("ö lost").with_task(task(3));
    let mut messages = vec![
        Message::Confirm,
        Message::Completed,
        Message::Failed(error.clone()),
        Message::Failed(Error::cancelled("")),
        Message::Ask {
            lost: vec![task(1), task(2)],
            error,
        },
        Message::Piece {
            announcement: None,
            piece: Piece::Result(9),
            data: 5,
        },
    ];
    for announcement in announcements() {
        messages.push(Message::Announce(announcement.clone()));
        let announcement = Some(announcement);
        messages.push(Message::Piece {
            announcement,
            piece: Piece::Part(0),
            data: 5,
        });
    }
    messages
}

#[test]
fn messages_come_back() {
    for message in messages() {
        let head = write(&key(), &message);
        let (key, again) = read(&head, || 5).unwrap();
        assert_eq!(key, self::key());
        assert_eq!(format!("{again:?}"), format!("{message:?}"));
        assert_eq!(write(&key, &again), head);
    }
    // A long message of an error is cut at a character.
    let long = Message::<()>::Failed(Error::unknown("ö".repeat(5000)));
    let (_, again) = read(&write(&key(), &long), || ()).unwrap();
    let Message::Failed(error) = again else {
        panic!("{again:?}")
    };
    assert_eq!(error.message(), "ö".repeat(2048));
}

#[test]
fn bytes_that_are_no_head_are_refused() {
    for message in messages() {
        let head = write(&key(), &message);
        for len in 0..head.len() {
            let error = read(&head[..len], || 5).unwrap_err();
            assert!(
                error
                    .message()
                    .starts_with("the head of a collective's message, byte ")
            );
        }
        let mut longer = head.clone();
        longer.push(0);
        assert!(
            read(&longer, || 5)
                .unwrap_err()
                .message()
                .ends_with("expected the end, found 1 bytes")
        );
        // A flipped bit is refused, or makes another message that is written so.
        for bit in 0..head.len() * 8 {
            let mut flipped = head.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok((key, other)) = read(&flipped, || 5) {
                assert_eq!(write(&key, &other), flipped, "{other:?}");
            }
        }
    }
    let version = read(&[9], || 5).unwrap_err();
    assert_eq!(
        version.message(),
        "the head of a collective's message, byte 1: expected version 1, found 9"
    );
    assert!(
        read(&vec![1; 1 << 21], || 5)
            .unwrap_err()
            .message()
            .contains("at most 1048576 bytes")
    );
}
