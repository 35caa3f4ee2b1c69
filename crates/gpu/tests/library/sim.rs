//! The simulated driver: it keeps the promises of drivers, and finds what is wrong.

use std::sync::Arc;

use tfrt_gpu::conformance;
use tfrt_gpu::driver::Driver;
use tfrt_gpu::driver::sim::{FindingKind, Policy, Sim, SimOptions};

fn sim(policy: Policy, seed: u64) -> (Sim, Arc<dyn Driver>) {
    let sim = Sim::new(SimOptions {
        policy,
        seed,
        ..SimOptions::default()
    });
    (sim.clone(), Arc::new(sim))
}

#[test]
fn the_simulated_driver_keeps_the_promises_under_all_policies() {
    for policy in Policy::ALL {
        for seed in 0..2 {
            let (sim, driver) = sim(policy, seed);
            conformance::suite(&driver);
            // The suite tries handles that were given back, and what can't be captured, on purpose.
            let meant = [FindingKind::BadHandle, FindingKind::Capture];
            let mut others = sim.findings();
            others.retain(|found| !meant.contains(&found.kind));
            assert!(others.is_empty(), "{policy:?}: {others:#?}");
            assert_eq!(sim.leaks(), [""; 0], "{policy:?}");
        }
    }
}

#[test]
fn a_lost_context_stays_lost() {
    for policy in Policy::ALL {
        let (sim, driver) = sim(policy, 1);
        conformance::sticky(&driver);
        let findings = sim.findings();
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(findings[0].kind, FindingKind::OutOfBounds);
        let text = &findings[0].text;
        assert!(
            text.contains("axpy") && text.ends_with("uses 4 bytes at 0x0, where no memory is"),
            "{text}"
        );
    }
}
