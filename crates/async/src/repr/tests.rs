//! Tests of registers whose value has another record of its type than the reader's: which record a
//! crate or a part of it gets is the compiler's choice.

use std::any::TypeId;

use super::*;
use crate::{Heap, Record};

/// A number on the heap.
#[derive(Debug, PartialEq)]
struct Boxed(i32);

impl Value for Boxed {
    const NAME: &'static str = "!test.boxed";
    type Storage = Heap;
    // A constant may be merged with what is equal to it, and has no address of its own then.
    const RECORD: &'static Record<Boxed> = {
        static RECORD: Record<Boxed> = Record::new();
        &RECORD
    };
}

const fn record<T: Value>() -> TypeRecord {
    TypeRecord {
        name: T::NAME,
        type_id: TypeId::of::<T>(),
        in_place: is_in_place::<T>(),
        needs_drop: mem::needs_drop::<T>(),
        free: cell::free::<T>,
        load: cell::load_in_place::<T>,
        store: cell::store_in_place::<T>,
    }
}

static OTHER_BOXED: TypeRecord = record::<Boxed>();
static OTHER_I32: TypeRecord = record::<i32>();

#[test]
fn value_on_the_heap_with_another_record_is_of_its_type() {
    let cell = cell::with_value(Boxed(7)).into_raw();
    // SAFETY: a counted pointer to a settled cell with a `Boxed`.
    let mut repr = unsafe { Repr::from_heap(&OTHER_BOXED, cell) };
    assert_ne!(repr.tag, Tag::of::<Boxed>());
    assert_eq!(repr.get::<i32>(), None);
    assert_eq!(repr.get(), Some(&Boxed(7)));
    assert_eq!(repr.get_mut::<i32>(), None);
    assert_eq!(repr.get_mut(), Some(&mut Boxed(7)));
    let repr = repr.take::<i32>().map(drop).unwrap_err();
    assert_eq!(repr.take().ok(), Some(Boxed(7)));
}

#[test]
fn value_in_place_with_another_record_is_of_its_type() {
    // SAFETY: the tag says that an `i32` is there.
    let mut repr = unsafe { Repr::with(Tag::in_place(&OTHER_I32), 7_i32) };
    assert_ne!(repr.tag, Tag::of::<i32>());
    assert_eq!(repr.get::<u32>(), None);
    assert_eq!(repr.get::<i32>(), Some(&7));
    assert_eq!(repr.get_mut::<u32>(), None);
    assert_eq!(repr.get_mut::<i32>(), Some(&mut 7));
    let repr = repr.take::<u32>().map(drop).unwrap_err();
    assert_eq!(repr.take::<i32>().ok(), Some(7));
}
