//! Runs the conformance suite of drivers on a real one, and measures a few things: `gpu_check [sticky]`.
//!
//! It needs a driver and nothing else, so that it can be carried to a machine that has one. It ends with 3 where no GPU
//! is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::Arc;
use std::time::Instant;

use tfrt_gpu::conformance::{self, Bed};
use tfrt_gpu::driver::Driver;
use tfrt_gpu::driver::cuda::Cuda;

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
    let context = driver.retain_primary(device).expect("it has a context");
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
    for (name, ptx) in [
        ("pointwise", include_str!("../kernels/pointwise.ptx")),
        ("matrix", include_str!("../kernels/matrix.ptx")),
        ("rows", include_str!("../kernels/rows.ptx")),
    ] {
        let begin = Instant::now();
        match driver.load_module(context, ptx.as_bytes()) {
            Ok(_) => println!("{name}.ptx loaded in {:?}", begin.elapsed()),
            Err(error) => println!("{name}.ptx: {error}"),
        }
    }
    exit(i32::from(n_failed > 0));
}
