use super::*;
use crate::DenseHostTensor;

#[test]
fn short_results_have_the_shape_that_both_are_broadcast_to() {
    use tfrt_host::{HostContext, kernel::KernelRegistry};

    let host = HostContext::builder(KernelRegistry::new()).build();
    let new = |extents: &[usize]| {
        let ones = vec![1_i32; extents.iter().product()];
        DenseHostTensor::from_slice(host.allocator(), extents, &ones).unwrap()
    };
    let shapes = [
        &[][..],
        &[1],
        &[1, 1],
        &[3],
        &[0],
        &[2, 3],
        &[0, 1],
        &[1, 0],
        &[2, 0],
    ];
    for x in shapes {
        for y in shapes {
            let short = binary_short::<Add, i32>(host.allocator(), &new(x), &new(y)).unwrap();
            let Some(sum) = short else {
                continue;
            };
            let wanted = broadcast_extents(&[x, y]).unwrap();
            assert_eq!(sum.shape().to_dims(), wanted, "{x:?} {y:?}");
            let reading = sum.read().unwrap();
            assert!(reading.elements::<i32>().unwrap().iter().all(|x| *x == 2));
        }
    }
}
