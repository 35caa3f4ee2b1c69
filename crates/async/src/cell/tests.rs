//! Tests of handles and promises' rights to a cell, beyond what values ask of them.

use super::*;

/// A number on the heap.
#[derive(Debug, PartialEq)]
struct Boxed(i32);

impl Value for Boxed {
    const NAME: &'static str = "!test.boxed";
    type Storage = crate::Heap;
}

/// Returns handles of a cell with a value, of one that failed and of one that is pending, and the
/// right to settle the last.
fn handles<T: Value>(value: T) -> (SettleRight, [Handle; 3]) {
    let (settled, value_handle) = pending::<T>();
    settled.resolve(value);
    let (failed, error_handle) = pending::<T>();
    failed.fail(Error::unknown("x"));
    let (right, pending_handle) = pending::<T>();
    (right, [value_handle, error_handle, pending_handle])
}

#[test]
fn value_is_moved_out_by_the_only_handle_of_its_type() {
    let (_right, [value, failed, pending]) = handles(Boxed(7));
    assert!(failed.into_value::<Boxed>().is_err());
    assert!(pending.into_value::<Boxed>().is_err());
    let value = value.into_value::<i32>().map(drop).unwrap_err();
    let other = value.clone();
    let value = value.into_value::<Boxed>().map(drop).unwrap_err();
    drop(other);
    assert_eq!(value.into_value().ok(), Some(Boxed(7)));
}

#[test]
fn value_is_written_by_the_only_handle_of_its_type() {
    let (_right, [mut value, mut failed, mut pending]) = handles(Boxed(7));
    assert_eq!(failed.value_mut::<Boxed>(), None);
    assert_eq!(pending.value_mut::<Boxed>(), None);
    assert_eq!(value.value_mut::<i32>(), None);
    let other = value.clone();
    assert_eq!(value.value_mut::<Boxed>(), None);
    drop(other);
    assert_eq!(value.value_mut(), Some(&mut Boxed(7)));
}

#[test]
fn value_in_place_is_copied_out_if_it_is_there() {
    let (_right, [value, failed, pending]) = handles(7_i32);
    assert!(failed.into_copy::<i32>().is_err());
    assert!(pending.into_copy::<i32>().is_err());
    let other = value.clone();
    let value = value.into_copy::<u32>().map(drop).unwrap_err();
    assert_eq!(value.into_copy().ok(), Some(7));
    assert_eq!(other.into_copy().ok(), Some(7));

    let (_right, [boxed, ..]) = handles(Boxed(7));
    let boxed = boxed.into_copy::<Boxed>().map(drop).unwrap_err();
    assert_eq!(boxed.into_value().ok(), Some(Boxed(7)));
}
