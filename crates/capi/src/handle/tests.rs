//! Tests of handles, places and the table.

use std::sync::atomic::{AtomicU64, Ordering};

use std::sync::Arc;

use tfrt_async::SystemAllocator;
use tfrt_host::HostAllocator;
use tfrt_tensor::DenseHostTensor;

use super::views::Of;
use super::*;
use crate::functions::status::Status;
use crate::lent::View;
use crate::value::{Tensor, known};

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
    let reason = tensor.with_quietly(|_| ()).err();
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
    assert!(first.take_quietly().is_ok());
    assert_eq!(code(first), None);
}

#[test]
fn facts_of_later_objects_in_a_place_are_not_those_of_a_handle() {
    const N: usize = if cfg!(miri) { 100 } else { 20_000 };
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
    const N: i32 = if cfg!(miri) { 20 } else { 2000 };
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

fn dense() -> DenseHostTensor {
    let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
    let mut made = DenseHostTensor::from_slice(&allocator, &[2], &[1.0_f32, 2.0]).unwrap();
    made.freeze();
    made
}

/// Makes a view of a tensor that the caller keeps until the view is ended.
#[expect(unsafe_code, reason = "tests keep the tensor")]
fn view(of: Of, tensor: &DenseHostTensor) -> Handle<Tensor> {
    // SAFETY: see above.
    let view = unsafe { View::new(tensor) }.unwrap();
    views::put(of, view).unwrap()
}

#[test]
fn views_that_are_left_count_the_memory_of_their_tensors() {
    let mut tensor = dense();
    let from = views::begin();
    let (deleted, left) = (view(Of::Input(0), &tensor), view(Of::Input(1), &tensor));
    assert!(tensor.is_sole(), "views are not counted");
    tensor.freeze();
    assert!(views::has(from, Of::Input(0)) && !views::has(from, Of::Input(2)));
    deleted.delete("tensor");
    assert!(!views::has(from, Of::Input(0)));
    views::end(from);
    assert!(!tensor.is_sole() && known::rank(left) == Some(1));
    drop(tensor);
    let bytes = left.with_quietly(|own| own.len_bytes());
    assert_eq!(bytes, Ok(8));
    left.delete("tensor");
    let reason = left.with_quietly(|_| ()).unwrap_err();
    assert_eq!(reason, "expected a TF_Tensor, found one that was deleted");
}

#[test]
fn views_of_inner_calls_end_before_those_of_outer_ones() {
    let tensor = dense();
    let outer = views::begin();
    let first = view(Of::Input(0), &tensor);
    let inner = views::begin();
    let second = view(Of::Input(0), &tensor);
    views::end(inner);
    assert!(views::has(outer, Of::Input(0)), "the first is there");
    assert!(!views::has(inner, Of::Input(0)));
    for handle in [first, second] {
        handle.delete("tensor");
    }
    views::end(outer);
}

#[test]
fn views_are_deleted_and_used_by_other_threads() {
    let tensor = dense();
    for round in 0..if cfg!(miri) { 10 } else { 300 } {
        let from = views::begin();
        let given = [0, 1, 2].map(|index| view(Of::Input(index), &tensor));
        std::thread::scope(|scope| {
            scope.spawn(|| given[0].delete("tensor"));
            scope.spawn(|| {
                let _gone = given[1].with_quietly(|own| own.n_elements());
                if round % 2 == 0 {
                    given[1].delete("tensor");
                }
            });
            views::end(from);
        });
        for handle in given {
            if handle.with_quietly(|_| ()).is_ok() {
                handle.delete("tensor");
            }
        }
        // Places were given back as often as they were taken: no two objects are in one.
        let both = [status(), status()];
        assert_ne!(both[0].bits, both[1].bits);
        for one in both {
            assert!(one.take_quietly().is_ok());
        }
    }
}

#[test]
fn there_is_room_for_few_views() {
    let tensor = dense();
    let from = views::begin();
    let made: Vec<Handle<Tensor>> = (0..100)
        .map_while(|index| {
            #[expect(unsafe_code, reason = "the test keeps the tensor")]
            // SAFETY: as above.
            let view = unsafe { View::new(&tensor) }?;
            views::put(Of::Input(index), view)
        })
        .collect();
    assert!((1..100).contains(&made.len()));
    views::end(from);
    for handle in made {
        handle.delete("tensor");
    }
}
