//! Tests of handles, places and the table.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::functions::status::Status;
use crate::value::Tensor;

fn status() -> Handle<Status> {
    Handle::new(Status::default())
}

#[test]
fn deleted_handles_lead_nowhere_though_their_place_is_used_again() {
    let first = status();
    assert!(first.take_quietly().is_ok());
    let second = status();
    let reason = first.with_quietly(|_| ()).unwrap_err();
    assert_eq!(reason, "expected a TF_Status, found one that was deleted");
    assert!(first.take_quietly().is_err());
    assert!(second.take_quietly().is_ok());
}

#[test]
fn handles_of_other_types_and_made_up_ones_are_refused() {
    let status = status();
    let tensor: Handle<Tensor> = Handle {
        bits: status.bits,
        kind: PhantomData,
    };
    let reason = tensor.take_quietly().err();
    let expected = "expected a TF_Tensor, found a TF_Status";
    assert_eq!(reason.as_deref(), Some(expected));
    assert!(status.with_quietly(|_| ()).is_ok(), "it is still there");
    for bits in [1, 16, 0x7fff_1234_5678, u64::MAX, status.bits + 1] {
        let made_up: Handle<Status> = Handle {
            bits,
            kind: PhantomData,
        };
        let reason = made_up.with_quietly(|_| ()).unwrap_err();
        assert!(reason.contains("has not given out"), "{bits:#x}: {reason}");
    }
    assert!(Handle::<Status>::NULL.take_quietly().is_err());
    assert!(status.take_quietly().is_ok());
}

#[test]
fn facts_are_those_of_the_object_that_a_handle_leads_to() {
    let code = |handle: Handle<Status>| handle.look(|facts| facts.word::<0>() as u32);
    let first = status();
    assert_eq!((code(first), code(Handle::NULL)), (Some(0), None));
    assert!(first.with_quietly(|own| own.code = 3).is_ok());
    assert_eq!(code(first), Some(3));
    let inside = first.with_quietly(|_| code(first));
    assert_eq!(inside, Ok(None), "somebody uses it");
    let tensor: Handle<Tensor> = Handle {
        bits: first.bits,
        kind: PhantomData,
    };
    assert_eq!(
        tensor.look(|facts| facts.word::<0>()),
        None,
        "of another type"
    );
    assert!(first.may_lead_somewhere());
    assert!(first.take_quietly().is_ok());
    assert_eq!((code(first), first.may_lead_somewhere()), (None, false));
}

#[test]
fn facts_of_later_objects_in_a_place_are_not_those_of_a_handle() {
    const N: usize = 20_000;
    let code_of = |bits: u64| (bits >> 32) as u32;
    let last = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Places are used again and again.
            for _ in 0..N {
                let handle = status();
                let set = |own: &mut Status| own.code = code_of(handle.bits).cast_signed();
                assert!(handle.with_quietly(set).is_ok());
                last.store(handle.bits, Ordering::Relaxed);
                assert!(handle.take_quietly().is_ok());
            }
        });
        scope.spawn(|| {
            for _ in 0..N {
                let bits = last.load(Ordering::Relaxed);
                let kind = PhantomData;
                let handle: Handle<Status> = Handle { bits, kind };
                let found = handle.look(|facts| facts.word::<0>() as u32);
                assert!(found.is_none_or(|code| code == code_of(bits)));
            }
        });
    });
}

#[test]
fn threads_use_an_object_in_turn_and_delete_those_of_others() {
    const N: i32 = 2000;
    let shared = status();
    let given: Vec<Handle<Status>> = (0..200).map(|_| status()).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..N {
                    shared.with_quietly(|own| own.code += 1).unwrap();
                    assert!(status().take_quietly().is_ok());
                }
            });
        }
        scope.spawn(|| {
            for handle in &given {
                assert!(handle.take_quietly().is_ok());
            }
        });
    });
    assert_eq!(shared.take_quietly().ok().map(|own| own.code), Some(3 * N));
    for handle in given {
        let reason = handle.with_quietly(|_| ()).unwrap_err();
        assert_eq!(reason, "expected a TF_Status, found one that was deleted");
    }
}

#[test]
fn object_stays_usable_after_a_panic_of_its_user() {
    let handle = status();
    let used = std::panic::catch_unwind(|| handle.with_quietly(|_| panic!("on purpose")));
    assert!(used.is_err());
    assert!(handle.take_quietly().is_ok());
}
