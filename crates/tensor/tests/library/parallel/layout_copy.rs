//! Copies of elements on a queue's workers, compared with those of views.

use tfrt_tensor::math::layout_copy::*;
use tfrt_tensor::{DenseHostTensor, TensorViewMut};

use super::TestBed;

/// Returns positions in dimensions of this extent, some counted from behind.
fn positions(bed: &TestBed, extents: &[usize], extent: i64) -> DenseHostTensor {
    let n: i64 = extents
        .iter()
        .map(|extent| i64::try_from(*extent).unwrap())
        .product();
    let list: Vec<i64> = (0..n).map(|i| i * 7919 % (2 * extent) - extent).collect();
    DenseHostTensor::from_slice(bed.host.allocator(), extents, &list).unwrap()
}

/// Returns the bits of a copy, which are those of views.
fn copied(bed: &TestBed, copy: &LayoutCopy, x: &DenseHostTensor) -> Vec<u32> {
    let out = bed.zeros(copy.extents());
    let bits = bed.bits(copy.run_into(&bed.execution, x, &out), &out);
    assert_eq!(
        bits,
        seen(copy.extents(), |out| {
            copy.run(&x.read().unwrap().view().unwrap(), out)
        })
    );
    bits
}

/// Returns the bits of what a function of views writes.
fn seen(
    extents: &[usize],
    body: impl FnOnce(&mut TensorViewMut<'_, f32>) -> Result<(), tfrt_host::Error>,
) -> Vec<u32> {
    let mut out = vec![0.0; extents.iter().product()];
    body(&mut TensorViewMut::new(&mut out, extents).unwrap()).unwrap();
    out.into_iter().map(f32::to_bits).collect()
}

/// Returns the bits of something of everything.
pub fn all(bed: &TestBed) -> Vec<Vec<u32>> {
    let e = &bed.execution;
    let (x, y) = (bed.random(&[3, 110, 101], 7), bed.random(&[3, 110, 101], 8));
    let extents = [3, 110, 101];
    let rows = positions(bed, &[2, 150], 110);
    let reading = rows.read().unwrap();
    let rows = reading.view::<i64>().unwrap();
    let copies = [
        LayoutCopy::transpose(&extents, &[2, 0, 1]),
        LayoutCopy::transpose(&extents, &[0, 2, 1]),
        LayoutCopy::reverse(&extents, &[0, 2]),
        LayoutCopy::tile(&extents, &[1, 2, 3]),
        LayoutCopy::broadcast(&extents, &[2, 3, 110, 101]),
        LayoutCopy::pad(&extents, &[(1, 0), (7, 3), (-2, 9)], Edge::Reflect),
        LayoutCopy::slice(&extents, &[Slice::ALL, Slice::new(-1, 0, -1), Slice::ALL]),
        LayoutCopy::gather(&extents, 1, &rows),
    ];
    let mut all: Vec<Vec<u32>> = copies
        .iter()
        .map(|copy| copied(bed, copy.as_ref().unwrap(), &x))
        .collect();
    let out = bed.zeros(&[3, 220, 101]);
    all.push(bed.bits(concat_into(e, &[&x, &y], 1, &out), &out));
    let readings = [x.read().unwrap(), y.read().unwrap()];
    let views = readings.each_ref().map(|reading| reading.view().unwrap());
    assert_eq!(
        all.last().unwrap(),
        &seen(&[3, 220, 101], |out| concat(&views, 1, out))
    );
    let out = bed.zeros(&[3, 110, 101, 2]);
    all.push(bed.bits(stack_into(e, &[&x, &y], 3, &out), &out));
    assert_eq!(
        all.last().unwrap(),
        &seen(&[3, 110, 101, 2], |out| stack(&views, 3, out))
    );
    let shape = [3, 59, 101];
    let named = positions(bed, &shape, 110);
    let reading = named.read().unwrap();
    let named_view = reading.view::<i64>().unwrap();
    let out = bed.zeros(&shape);
    let done = gather_elements_into(e, &x, 1, &named, &out);
    all.push(bed.bits(done, &out));
    let wanted = seen(&shape, |out| {
        gather_elements(&views[0], 1, &named_view, out)
    });
    assert_eq!(all.last().unwrap(), &wanted);
    let updates = bed.random(&shape, 9);
    let out = bed.zeros(&extents);
    let done = scatter_elements_into(e, Combine::Add, &x, 1, &named, &updates, &out);
    all.push(bed.bits(done, &out));
    let reading = updates.read().unwrap();
    let given = reading.view().unwrap();
    let wanted = seen(&extents, |out| {
        scatter_elements(|x, y| x + y, &views[0], 1, &named_view, &given, out)
    });
    assert_eq!(all.last().unwrap(), &wanted);
    let lists = positions(bed, &[3, 300, 1], 110);
    let out = bed.zeros(&[3, 300, 101]);
    all.push(bed.bits(gather_nd_into(e, &x, 1, &lists, &out), &out));
    let reading = lists.read().unwrap();
    let wanted = seen(&[3, 300, 101], |out| {
        gather_nd(&views[0], 1, &reading.view::<i64>().unwrap(), out)
    });
    assert_eq!(all.last().unwrap(), &wanted);
    let lists = positions(bed, &[40, 1], 3);
    let (updates, out) = (bed.random(&[40, 110, 101], 3), bed.zeros(&extents));
    let done = scatter_nd_into(e, Combine::Add, &x, &lists, &updates, &out);
    all.push(bed.bits(done, &out));
    let labels = positions(bed, &[400, 3], 50);
    let out = bed.zeros(&[400, 50, 3]);
    let scalar = |value: f32| DenseHostTensor::scalar(bed.host.allocator(), value).unwrap();
    let done = one_hot_into(e, &labels, 1, [&scalar(0.5), &scalar(2.0)], &out);
    all.push(bed.bits(done, &out));
    let reading = labels.read().unwrap();
    let labels = reading.view::<i64>().unwrap();
    let wanted = seen(&[400, 50, 3], |out| one_hot(&labels, 1, [0.5, 2.0], out));
    assert_eq!(all.last().unwrap(), &wanted);
    all
}
