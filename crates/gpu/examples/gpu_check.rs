//! Runs the conformance suite of drivers on a real one, and measures a few things: `gpu_check [sticky]`.
//!
//! It needs a driver and nothing else, so that it can be carried to a machine that has one. It ends with 3 where no GPU
//! is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::Arc;
use std::time::Instant;

use tfrt_gpu::GpuDevice;
use tfrt_gpu::conformance::{self, Bed};
use tfrt_gpu::driver::Driver;
use tfrt_gpu::driver::cuda::Cuda;
use tfrt_host::HostContext;
use tfrt_host::device::Device;
use tfrt_host::kernel::KernelRegistry;

#[path = "../tests/library/programs.rs"]
mod programs;
#[path = "../tests/library/rows.rs"]
mod rows;

fn main() {
    let begin = Instant::now();
    let cuda = match Cuda::open() {
        Ok(cuda) => cuda,
        Err(error) => {
            println!("{error}");
            exit(3);
        }
    };
    println!("{} opened in {:?}", cuda.library(), begin.elapsed());
    let driver: Arc<dyn Driver> = Arc::new(cuda);
    let device = driver.device(0).expect("there is a device");
    println!(
        "version {:?}, {:?}",
        driver.version(),
        driver.properties(device)
    );
    if std::env::args().nth(1).as_deref() == Some("sticky") {
        conformance::sticky(&driver);
        println!("passed: a lost context stays lost");
        return;
    }
    let begin = Instant::now();
    driver.retain_primary(device).expect("it has a context");
    println!("context made in {:?}", begin.elapsed());
    let mut n_failed = 0;
    for (promise, check) in conformance::checks() {
        let begin = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(|| Bed::with(&driver, *check))).is_ok();
        n_failed += u32::from(!passed);
        let word = if passed { "passed" } else { "FAILED" };
        println!("{word}: {promise} ({:?})", begin.elapsed());
    }
    println!(
        "{} of {} passed",
        conformance::checks().len() as u32 - n_failed,
        conformance::checks().len()
    );
    let begin = Instant::now();
    let of_device = || {
        tfrt_host::device::conformance::suite(&|id| {
            let host = HostContext::builder(KernelRegistry::new()).build();
            let device = GpuDevice::new(driver.clone(), 0, host.allocator().clone());
            let device = device.expect("there is a device");
            device.number(id);
            let device: Arc<dyn Device> = Arc::new(device);
            device
        });
    };
    let passed = catch_unwind(AssertUnwindSafe(of_device)).is_ok();
    n_failed += u32::from(!passed);
    println!(
        "{}: the promises of devices ({:?})",
        if passed { "passed" } else { "FAILED" },
        begin.elapsed()
    );
    let (mut n_rows, mut n_rows_passed) = (0, 0);
    for seed in 1..=3 {
        for (passed, line) in rows::compare(&driver, seed, true) {
            n_rows += 1;
            n_rows_passed += u32::from(passed);
            if seed == 1 || !passed {
                println!("{}: {line}", if passed { "passed" } else { "FAILED" });
            }
        }
    }
    println!("{n_rows_passed} of {n_rows} calls of rows as on the processor");
    let (mut n_programs, mut n_programs_passed) = (0, 0);
    for (passed, line) in programs::compare(&driver, 1, 200, 100_000) {
        n_programs += 1;
        n_programs_passed += u32::from(passed);
        println!("{}: {line}", if passed { "passed" } else { "FAILED" });
    }
    println!("{n_programs_passed} of {n_programs} programs of pointwise steps as on the processor");
    exit(i32::from(
        n_failed > 0 || n_rows_passed < n_rows || n_programs_passed < n_programs,
    ));
}
