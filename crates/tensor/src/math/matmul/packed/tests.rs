use proptest::prelude::*;
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;

use super::*;
use crate::math::packed_gemm::{Activation, Addend};

fn allocator() -> Arc<dyn HostAllocator> {
    let host = HostContext::builder(KernelRegistry::new()).build();
    host.allocator().clone()
}

/// Whole numbers that look random.
fn numbers(n: usize, factor: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * factor + i / 3) % 7) as f32 - 3.0)
        .collect()
}

/// Multiplies on all instruction sets, and compares with the definition.
fn check([m, k, n]: [usize; 3], is_transposed: bool) {
    let (a, b) = (numbers(m * k, 5), numbers(k * n, 4));
    let (shift, before) = (numbers(n, 3), numbers(m * n, 2));
    let element = |depth: usize, column: usize| match is_transposed {
        true => b[column * k + depth],
        false => b[depth * n + column],
    };
    let right = match is_transposed {
        true => TensorView::new(&b, &[n, k])
            .unwrap()
            .permute(&[1, 0])
            .unwrap(),
        false => TensorView::new(&b, &[k, n]).unwrap(),
    };
    let wanted: Vec<f32> = (0..m * n)
        .map(|index| {
            let (row, column) = (index / n, index % n);
            let products = (0..k).map(|depth| a[row * k + depth] * element(depth, column));
            (products.sum::<f32>() + shift[column] + before[index]).max(0.0)
        })
        .collect();
    for set in InstructionSet::all_precisions().filter(|set| set.is_available()) {
        let right = PackedRhs::pack_for(&allocator(), set, &right).unwrap();
        let mut out = before.clone();
        let epilogue = Epilogue {
            scale: None,
            shift: Some(&shift),
            added: Addend::Result(1.0),
            activation: Activation::Relu,
            then: None,
        };
        matmul_packed(
            &TensorView::new(&a, &[m, k]).unwrap(),
            &right,
            epilogue,
            &mut TensorViewMut::new(&mut out, &[m, n]).unwrap(),
        )
        .unwrap();
        assert_eq!(out, wanted, "{set:?} {m}x{k}x{n}");
    }
}

proptest! {
    #[test]
    fn packed_products_are_those_of_the_definition(
        m in 0..40_usize, k in 0..40_usize, n in 0..80_usize, is_transposed: bool,
    ) {
        check([m, k, n], is_transposed);
    }
}

#[test]
fn rows_that_meet_in_the_cache_are_copied() {
    check([17, 1024, 3], false);
    check([3, 2048, 33], true);
}

#[test]
fn many_rows_are_cut_into_blocks() {
    check([300, 70, 130], false);
}

#[test]
fn matrices_that_do_not_fit_are_told() {
    let x = [0.0; 8];
    let view = |extents: &[usize]| TensorView::new(&x, extents).unwrap();
    let none = PackedRhs::pack(&allocator(), &view(&[8]));
    let message = none.unwrap_err().message().to_owned();
    assert_eq!(message, "expected a matrix to pack, found shape [8]");
    let right = PackedRhs::pack(&allocator(), &view(&[2, 4])).unwrap();
    let mut out = [0.0; 16];
    for (left, result) in [
        (&[4, 2][..], &[2, 8][..]),
        (&[8], &[16]),
        (&[2, 4], &[4, 4]),
        (&[4, 2], &[1, 4, 4]),
    ] {
        let mut out = TensorViewMut::new(&mut out, result).unwrap();
        let error = matmul_packed(&view(left), &right, Epilogue::default(), &mut out).unwrap_err();
        assert!(
            error
                .message()
                .contains("expected a left side of shape [.., 2]")
        );
    }
    let mut out = TensorViewMut::new(&mut out, &[2, 2, 4]).unwrap();
    matmul_packed(&view(&[2, 2, 2]), &right, Epilogue::default(), &mut out).unwrap();
}

#[test]
fn matrices_that_fit_no_memory_are_refused() {
    let x = [1.0];
    let one = TensorView::new(&x, &[1, 1]).unwrap();
    for extents in [[1, usize::MAX], [usize::MAX, usize::MAX], [usize::MAX, 1]] {
        let wide = one.broadcast(&extents).unwrap();
        assert!(PackedRhs::pack(&allocator(), &wide).is_err());
    }
}

proptest! {
    #[test]
    fn elements_that_are_laid_out_again_are_those_of_the_other_instruction_set(
        k in 0..20_usize, n in 0..80_usize,
    ) {
        let weights = numbers(k * n, 5);
        let view = TensorView::new(&weights, &[k, n]).unwrap();
        let available = InstructionSet::ALL.into_iter().filter(|set| set.is_available());
        let packed: Vec<PackedRhs> = available
            .map(|set| PackedRhs::pack_for(&allocator(), set, &view).unwrap())
            .collect();
        let elements = |packed: &PackedRhs| {
            packed.elements().read().unwrap().elements::<f32>().unwrap().to_vec()
        };
        for (from, to) in packed.iter().flat_map(|from| packed.iter().map(move |to| (from, to))) {
            let sets = [from, to].map(PackedRhs::instruction_set);
            let laid = from.elements_for(&allocator(), sets[1]).unwrap();
            let reading = laid.read().unwrap();
            prop_assert_eq!(reading.elements::<f32>().unwrap(), &elements(to)[..]);
            let again = PackedRhs::restore(&allocator(), sets, [k, n], from.elements().clone());
            prop_assert_eq!(elements(&again.unwrap()), elements(to));
            let wrong = PackedRhs::restore(&allocator(), sets, [k + 1, n + 1], from.elements().clone());
            prop_assert!(wrong.is_err());
        }
    }
}

/// Tests products with rounded factors: they are those of the rounded numbers, and no row depends on another.
#[test]
fn rounded_factors_are_multiplied_exactly() {
    let set = InstructionSet::AmxBf16;
    if !set.is_available() {
        return;
    }
    let number = |index: usize| ((index * 7919 % 4001) as f32 / 2000.0 - 1.0).powi(3);
    let rounded = |x: &f32| f64::from(half::bf16::from_f32(*x).to_f32());
    for [m, k, n] in [
        [1, 1, 1],
        [1, 384, 1000],
        [17, 33, 47],
        [32, 64, 32],
        [33, 100, 16],
        [70, 130, 15],
        [129, 700, 65],
    ] {
        let a: Vec<f32> = (0..m * k).map(number).collect();
        let b: Vec<f32> = (0..k * n).map(|index| number(index + 5)).collect();
        let right = TensorView::new(&b, &[k, n]).unwrap();
        let right = PackedRhs::pack_for(&allocator(), set, &right).unwrap();
        let product = |a: &[f32]| {
            let m = a.len() / k;
            let mut out = vec![0.0; m * n];
            let a = TensorView::new(a, &[m, k]).unwrap();
            let mut view = TensorViewMut::new(&mut out, &[m, n]).unwrap();
            matmul_packed(&a, &right, Epilogue::default(), &mut view).unwrap();
            out
        };
        let found = product(&a);
        for (index, found) in found.iter().enumerate() {
            let (row, column) = (index / n, index % n);
            let terms = (0..k).map(|d| rounded(&a[row * k + d]) * rounded(&b[d * n + column]));
            let wanted: f64 = terms.clone().sum();
            let off = (f64::from(*found) - wanted).abs();
            let most = terms.map(f64::abs).sum::<f64>() * 1e-6;
            assert!(
                off <= most,
                "{m}x{k}x{n} at {index}: {found}, wanted {wanted}"
            );
        }
        for (row, found) in found.chunks(n).enumerate() {
            assert_eq!(product(&a[row * k..][..k]), found, "{m}x{k}x{n}, row {row}");
        }
    }
}
