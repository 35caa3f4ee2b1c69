//! `tfrt_tutorial.*`: a type and two kernels, as a newcomer would write them.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Chain, HostContext, InPlace, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_tutorial.create_coordinate", create)
        .add("tfrt_tutorial.print_coordinate", print);
}

/// A point, small enough to lie in a register.
#[derive(Clone, Copy)]
struct Coordinate {
    x: i32,
    y: i32,
}

impl Value for Coordinate {
    const NAME: &'static str = "!my.coordinate";
    type Storage = InPlace;
}

/// `%p = "tfrt_tutorial.create_coordinate"(%x, %y)`
fn create(x: i32, y: i32) -> Coordinate {
    Coordinate { x, y }
}

/// `%c1 = "tfrt_tutorial.print_coordinate"(%p, %c0)`
fn print(point: Coordinate, host: &HostContext) -> Chain {
    host.output()
        .print(format_args!("({}, {})", point.x, point.y));
    Chain
}
