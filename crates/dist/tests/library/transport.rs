//! Transports, by the tests that each must pass.

use tfrt_dist::conformance::{self, LocalBed};

#[test]
fn the_transport_within_a_process_keeps_its_promises() {
    conformance::suite(&|| Box::<LocalBed>::default());
}
