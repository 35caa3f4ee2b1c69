//! A model of a ring that is read while it is written.

use super::ring::Ring;
use crate::sync::{Arc, thread};

#[test]
fn record_is_whole_or_not_there() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(|| {
        let ring = Arc::new(Ring::new(2));
        ring.write([1; 4]);
        let writer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.write([2; 4]);
                ring.write([3; 4]);
            })
        };
        let (n_lost, records) = ring.read();
        for (index, words) in records.iter().enumerate() {
            let number = n_lost + 1 + index as u64;
            assert_eq!(*words, [number; 4], "a record is torn");
        }
        writer.join().unwrap();
        assert_eq!(ring.read(), (2, vec![[3; 4]]));
    });
}
