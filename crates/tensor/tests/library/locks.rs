//! Locks of several variables, which are taken in one order whatever the order they are named in.

use std::sync::Arc;

use tfrt_host::LockMode;
use tfrt_tensor::resource::{Slot, Variable, lock_all, try_lock_all};

fn variables(n: usize) -> Vec<Arc<Slot>> {
    (0..n).map(|_| Slot::anonymous(Variable::new())).collect()
}

fn lock(slot: &Slot) -> tfrt_host::RwHold {
    let variable = slot.get::<Variable>().unwrap();
    variable.lock().try_write().expect("nobody has it")
}

#[test]
fn two_who_name_variables_in_different_orders_do_not_wait_for_each_other() {
    let slots = variables(2);
    let (a, b) = (slots[0].clone(), slots[1].clone());
    let (of_a, of_b) = (lock(&a), lock(&b));
    let one = lock_all(&[a.clone(), b.clone()], LockMode::Write).unwrap();
    let other = lock_all(&[b.clone(), a.clone()], LockMode::Write).unwrap();
    assert!(!one.is_settled() && !other.is_settled());
    // Were the second to wait for `b`, it would get that, and the first `a`.
    drop(of_a);
    drop(of_b);
    assert!(one.is_settled(), "the first has both");
    assert!(!other.is_settled());
    drop(one);
    assert!(other.is_settled());
    drop(other);
    assert!(try_lock_all(&slots, LockMode::Write).unwrap().is_some());
}

#[test]
fn who_waits_for_one_holds_none_behind_it() {
    let slots = variables(4);
    let reversed: Vec<_> = slots.iter().rev().cloned().collect();
    for (index, slot) in slots.iter().enumerate() {
        let held = lock(slot);
        let waits = lock_all(&reversed, LockMode::Write).unwrap();
        for (other, slot) in slots.iter().enumerate() {
            let variable = slot.get::<Variable>().unwrap();
            assert_eq!(variable.lock().try_read().is_some(), other > index);
        }
        drop(held);
        assert!(waits.is_settled());
    }
}

#[test]
fn a_variable_that_is_named_twice_is_locked_once() {
    let slots = variables(1);
    let twice = [slots[0].clone(), slots[0].clone()];
    assert!(lock_all(&twice, LockMode::Write).unwrap().is_settled());
    assert!(try_lock_all(&twice, LockMode::Write).unwrap().is_some());
}
