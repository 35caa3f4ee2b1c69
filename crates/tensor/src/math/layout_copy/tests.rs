use proptest::prelude::*;

use super::*;
use crate::math::testing::{Layout, coordinates, elements, layout_of, layouts};
use crate::{BF16, Bool, Complex, Quantized, to_bytes};

/// Moves elements of one type, at once and in chunks, and compares with what `place` says: where in the input
/// each element of the result is.
fn check_type<T: Element>(
    copy: &LayoutCopy,
    layout: &Layout,
    place: &dyn Fn(&[usize]) -> Option<Vec<usize>>,
) -> Result<(), TestCaseError> {
    let all = elements::<T>(layout.len + 1);
    let (x, around) = (layout.view(&all), all[layout.len]);
    let n: usize = copy.extents().iter().product();
    let wanted: Vec<T> = (0..n)
        .map(|index| match place(&coordinates(index, copy.extents())) {
            Some(place) => x.get(&place).unwrap(),
            None => around,
        })
        .collect();
    let mut out = vec![T::ZERO; n];
    let mut view = TensorViewMut::new(&mut out, copy.extents()).unwrap();
    copy.run_around(&x, around, &mut view).unwrap();
    prop_assert_eq!(to_bytes(&out), to_bytes(&wanted), "{:?}", T::DTYPE);
    let engine = copy.bind(x.strides());
    let small = if n < 500 { 1 } else { 97 };
    for chunk in [engine.multiple(), engine.multiple() * 3, small, 5 * small] {
        out.fill(T::ZERO);
        for (number, part) in out.chunks_mut(chunk).enumerate() {
            engine.run(x.elements(), around, number * chunk, part);
        }
        prop_assert_eq!(to_bytes(&out), to_bytes(&wanted), "chunks of {}", chunk);
    }
    Ok(())
}

fn check(
    copy: &LayoutCopy,
    layout: &Layout,
    place: impl Fn(&[usize]) -> Option<Vec<usize>>,
) -> Result<(), TestCaseError> {
    check_type::<Bool>(copy, layout, &place)?;
    check_type::<BF16>(copy, layout, &place)?;
    check_type::<f32>(copy, layout, &place)?;
    check_type::<f64>(copy, layout, &place)?;
    check_type::<Complex<f32>>(copy, layout, &place)?;
    check_type::<Quantized<i16>>(copy, layout, &place)?;
    check_type::<Complex<f64>>(copy, layout, &place)
}

/// Returns a layout, and a number for each of its dimensions.
fn with_each<S: Strategy>(of: impl Fn() -> S) -> impl Strategy<Value = (Layout, Vec<S::Value>)>
where
    S::Value: Clone,
{
    layouts(4, 6).prop_flat_map(move |layout| {
        let rank = layout.extents.len();
        (Just(layout), prop::collection::vec(of(), rank))
    })
}

fn edges() -> impl Strategy<Value = Edge> {
    prop::sample::select(vec![
        Edge::Constant,
        Edge::Repeat,
        Edge::Reflect,
        Edge::Wrap,
    ])
}

proptest! {
    // Each case tries several types, each in several chunks.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn transposing_exchanges_coordinates(
        (layout, order) in layouts(4, 6).prop_flat_map(|layout| {
            let order: Vec<usize> = (0..layout.extents.len()).collect();
            (Just(layout), Just(order).prop_shuffle())
        })
    ) {
        let copy = LayoutCopy::transpose(&layout.extents, &order).unwrap();
        check(&copy, &layout, |place| {
            let mut from = vec![0; place.len()];
            order.iter().zip(place).for_each(|(dimension, index)| from[*dimension] = *index);
            Some(from)
        })?;
    }

    #[test]
    fn large_transpositions_go_by_squares(
        (layout, order) in (1..3_usize, 1..70_usize, 1..4_usize, 1..70_usize)
            .prop_flat_map(|(a, b, c, d)| layout_of(vec![a, b, c, d]))
            .prop_flat_map(|layout| (Just(layout), Just(vec![0, 1, 2, 3]).prop_shuffle()))
    ) {
        let copy = LayoutCopy::transpose(&layout.extents, &order).unwrap();
        let place = |place: &[usize]| {
            let mut from = vec![0; place.len()];
            order.iter().zip(place).for_each(|(dimension, index)| from[*dimension] = *index);
            Some(from)
        };
        check_type::<u8>(&copy, &layout, &place)?;
        check_type::<f32>(&copy, &layout, &place)?;
    }

    #[test]
    fn slices_are_those_of_python((layout, slices) in with_each(|| (-8..8_i64, -8..8_i64, 1..4_i64, any::<bool>(), 0..4))) {
        let slices: Vec<Slice> = slices
            .into_iter()
            .map(|(start, end, step, is_backwards, open)| Slice {
                start: if open == 1 { i64::MIN } else { start },
                end: if open == 2 { i64::MAX } else { end },
                step: if is_backwards { -step } else { step },
            })
            .collect();
        let copy = LayoutCopy::slice(&layout.extents, &slices).unwrap();
        // As the language has it: walk, and keep what is within.
        let taken: Vec<Vec<i64>> = slices.iter().zip(&layout.extents).map(|(slice, extent)| {
            let n = i64::try_from(*extent).unwrap();
            let from_front = |x: i64| if x < 0 { x.saturating_add(n) } else { x };
            let (least, most) = if slice.step > 0 { (0, n) } else { (-1, n - 1) };
            let (mut at, end) = (from_front(slice.start).clamp(least, most), from_front(slice.end).clamp(least, most));
            let mut list = Vec::new();
            while if slice.step > 0 { at < end } else { at > end } {
                list.push(at);
                at += slice.step;
            }
            list
        }).collect();
        let extents: Vec<usize> = taken.iter().map(Vec::len).collect();
        prop_assert_eq!(copy.extents(), &extents[..]);
        check(&copy, &layout, |place| {
            Some(place.iter().zip(&taken).map(|(index, list)| usize::try_from(list[*index]).unwrap()).collect())
        })?;
    }

    #[test]
    fn dimensions_are_turned_around((layout, is_turned) in with_each(any::<bool>)) {
        let dimensions: Vec<usize> = (0..is_turned.len()).filter(|d| is_turned[*d]).collect();
        let copy = LayoutCopy::reverse(&layout.extents, &dimensions).unwrap();
        check(&copy, &layout, |place| {
            let from = |(dimension, index): (usize, &usize)| match is_turned[dimension] {
                true => layout.extents[dimension] - 1 - index,
                false => *index,
            };
            Some(place.iter().enumerate().map(from).collect())
        })?;
    }

    #[test]
    fn tiles_repeat((layout, times) in with_each(|| 0..4_usize)) {
        let copy = LayoutCopy::tile(&layout.extents, &times).unwrap();
        check(&copy, &layout, |place| {
            Some(place.iter().zip(&layout.extents).map(|(index, extent)| index % extent).collect())
        })?;
    }

    #[test]
    fn broadcasting_repeats(
        (layout, ones) in with_each(any::<bool>),
        front in prop::collection::vec(0..3_usize, 0..2),
    ) {
        // The extents of the input that are 1, and what they become.
        let mut input = layout.clone();
        for (extent, one) in input.extents.iter_mut().zip(&ones) {
            if *one {
                *extent = 1;
            }
        }
        let output: Vec<usize> = front.iter().chain(&layout.extents).copied().collect();
        let copy = LayoutCopy::broadcast(&input.extents, &output).unwrap();
        check(&copy, &input, |place| {
            let own = place[front.len()..].iter().zip(&ones);
            Some(own.map(|(index, one)| if *one { 0 } else { *index }).collect())
        })?;
    }

    #[test]
    fn pads_are_those_of_the_definition(
        (layout, pads) in with_each(|| (-3..8_i64, -3..8_i64)),
        edge in edges(),
    ) {
        let Ok(copy) = LayoutCopy::pad(&layout.extents, &pads, edge) else {
            let is_impossible = |((before, behind), extent): (&(i64, i64), &usize)| {
                let left = i64::try_from(*extent).unwrap() + before.min(&0) + behind.min(&0);
                left < 0 || (left == 0 && (*before > 0 || *behind > 0) && edge != Edge::Constant)
            };
            prop_assert!(pads.iter().zip(&layout.extents).any(is_impossible));
            return Ok(());
        };
        check(&copy, &layout, |place| {
            place.iter().zip(&pads).zip(&layout.extents).map(|((index, (before, behind)), extent)| {
                let (cut, end) = (-before.min(&0), i64::try_from(*extent).unwrap() + behind.min(&0));
                let n = end - cut;
                let mut at = i64::try_from(*index).unwrap() - before.max(&0);
                match edge {
                    Edge::Constant if !(0..n).contains(&at) => return None,
                    Edge::Constant => {}
                    Edge::Repeat => at = at.clamp(0, n - 1),
                    Edge::Wrap => at = at.rem_euclid(n),
                    Edge::Reflect => while n > 0 && !(0..n).contains(&at) {
                        at = if n == 1 { 0 } else if at < 0 { -at } else { 2 * (n - 1) - at };
                    },
                }
                usize::try_from(at + cut).ok()
            }).collect()
        })?;
    }

    #[test]
    fn parts_joined_again_are_the_whole(layout in layouts(4, 6), cuts in prop::collection::vec(0..6_usize, 1..4), dimension in 0..4_usize) {
        prop_assume!(dimension < layout.extents.len());
        let mut left = layout.extents[dimension];
        let mut sizes: Vec<usize> = cuts.into_iter().map(|cut| {
            let cut = cut.min(left);
            left -= cut;
            cut
        }).collect();
        sizes.push(left);
        let all = elements::<u16>(layout.len);
        let x = layout.view(&all);
        let parts: Vec<LayoutCopy> = LayoutCopy::split(&layout.extents, dimension, &sizes).unwrap().collect();
        let moved: Vec<Vec<u16>> = parts.iter().map(|part| {
            let mut out = vec![0; part.extents().iter().product()];
            part.run(&x, &mut TensorViewMut::new(&mut out, part.extents()).unwrap()).unwrap();
            out
        }).collect();
        // Views that lie apart are joined as those that do not.
        for is_apart in [false, true] {
            let spread: Vec<Vec<u16>> = moved.iter().map(|part| part.iter().flat_map(|x| [*x, 0]).collect()).collect();
            let views: Vec<TensorView<'_, u16>> = moved.iter().zip(&spread).zip(&parts).map(|((dense, spread), part)| {
                let view = TensorView::new(dense, part.extents()).unwrap();
                let strides: Vec<usize> = view.strides().iter().map(|stride| 2 * stride).collect();
                match is_apart {
                    true => TensorView::strided(spread, part.extents(), &strides).unwrap(),
                    false => view,
                }
            }).collect();
            let mut out = vec![0; x.n_elements()];
            concat(&views, dimension, &mut TensorViewMut::new(&mut out, &layout.extents).unwrap()).unwrap();
            prop_assert_eq!(out, x.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn stacked_tensors_are_found_by_their_number(layout in layouts(3, 5), n in 1..4_usize, dimension in 0..4_usize) {
        prop_assume!(dimension <= layout.extents.len());
        let all = elements::<i32>(layout.len * n);
        let parts: Vec<TensorView<'_, i32>> = all.chunks(layout.len).map(|part| layout.view(part)).collect();
        let shapes: Vec<&[usize]> = parts.iter().map(TensorView::extents).collect();
        let extents = stack_extents(&shapes, dimension).unwrap();
        let mut out = vec![0; extents.iter().product()];
        stack(&parts, dimension, &mut TensorViewMut::new(&mut out, &extents).unwrap()).unwrap();
        for (index, found) in out.iter().enumerate() {
            let mut place = coordinates(index, &extents);
            let number = place.remove(dimension);
            prop_assert_eq!(*found, parts[number].get(&place).unwrap());
        }
    }

    #[test]
    fn gathered_elements_are_those_that_are_named(
        layout in layouts(3, 5), positions in layouts(2, 4), dimension in 0..3_usize, seed in 0..100_usize,
    ) {
        prop_assume!(dimension < layout.extents.len() && layout.extents[dimension] > 0);
        let extent = i64::try_from(layout.extents[dimension]).unwrap();
        let list: Vec<i64> = (0..positions.len).map(|i| i64::try_from((i * 7 + seed) % (2 * layout.extents[dimension])).unwrap() - extent).collect();
        let named = positions.view(&list);
        let copy = LayoutCopy::gather(&layout.extents, dimension, &named).unwrap();
        let n_named = positions.extents.len();
        check(&copy, &layout, |place| {
            let position = named.get(&place[dimension..dimension + n_named]).unwrap();
            let mut from = place[..dimension].to_vec();
            from.push(usize::try_from(position.rem_euclid(extent)).unwrap());
            from.extend_from_slice(&place[dimension + n_named..]);
            Some(from)
        })?;
    }

    #[test]
    fn elements_are_gathered_and_scattered_place_by_place(
        layout in layouts(3, 5), dimension in 0..3_usize, cut in 0..3_usize, many in 0..7_usize, seed in 0..100_usize,
    ) {
        prop_assume!(dimension < layout.extents.len() && layout.extents[dimension] > 0);
        let extent = layout.extents[dimension];
        let shape: Vec<usize> = layout.extents.iter().enumerate().map(|(index, own)| {
            if index == dimension { many } else { own.saturating_sub(cut) }
        }).collect();
        let n: usize = shape.iter().product();
        let positions: Vec<i32> = (0..n).map(|i| i32::try_from((i * 5 + seed) % (2 * extent)).unwrap() - i32::try_from(extent).unwrap()).collect();
        let place = |index: usize| {
            let mut place = coordinates(index, &shape);
            place[dimension] = usize::try_from(positions[index].rem_euclid(i32::try_from(extent).unwrap())).unwrap();
            place
        };
        let all = elements::<u32>(layout.len);
        let x = layout.view(&all);
        let named = TensorView::new(&positions, &shape).unwrap();
        let mut out = vec![0; n];
        gather_elements(&x, dimension, &named, &mut TensorViewMut::new(&mut out, &shape).unwrap()).unwrap();
        for (index, found) in out.iter().enumerate() {
            prop_assert_eq!(*found, x.get(&place(index)).unwrap());
        }
        let updates = elements::<u32>(n);
        let given = TensorView::new(&updates, &shape).unwrap();
        let (mut sums, mut last) = (x.iter().collect::<Vec<_>>(), x.iter().collect::<Vec<_>>());
        let number = |place: &[usize]| place.iter().zip(&layout.extents).fold(0, |sum, (own, extent)| sum * extent + own);
        for (index, update) in updates.iter().enumerate() {
            let to = number(&place(index));
            sums[to] = sums[to].wrapping_add(*update);
            last[to] = *update;
        }
        let mut out = vec![0; sums.len()];
        let mut view = TensorViewMut::new(&mut out, &layout.extents).unwrap();
        scatter_elements(u32::wrapping_add, &x, dimension, &named, &given, &mut view).unwrap();
        prop_assert_eq!(view.as_mut_slice(), &sums[..]);
        scatter_elements(|_, y| y, &x, dimension, &named, &given, &mut view).unwrap();
        prop_assert_eq!(&out, &last);
    }

    #[test]
    fn lists_of_positions_name_parts(
        layout in layouts(4, 5), [n_batch, n_named] in [0..3_usize, 0..3_usize], places in prop::collection::vec(0..4_usize, 0..3), seed in 0..100_usize,
    ) {
        let extents = &layout.extents;
        prop_assume!(n_batch + n_named <= extents.len() && !extents[n_batch..n_batch + n_named].contains(&0));
        let mut shape = extents[..n_batch].to_vec();
        shape.extend(&places);
        let n: usize = shape.iter().product();
        shape.push(n_named);
        let list: Vec<i64> = (0..n * n_named).map(|i| {
            let extent = extents[n_batch + i % n_named];
            i64::try_from((i * 5 + seed) % (2 * extent)).unwrap() - i64::try_from(extent).unwrap()
        }).collect();
        let positions = TensorView::new(&list, &shape).unwrap();
        let wanted = gather_nd_extents(extents, n_batch, &shape).unwrap();
        let from = |place: &[usize]| {
            let (own, rest) = place.split_at(n_batch + places.len());
            let mut from = place[..n_batch].to_vec();
            for index in 0..n_named {
                let mut at = own.to_vec();
                at.push(index);
                let extent = i64::try_from(extents[n_batch + index]).unwrap();
                from.push(usize::try_from(positions.get(&at).unwrap().rem_euclid(extent)).unwrap());
            }
            from.extend_from_slice(rest);
            from
        };
        let all = elements::<u16>(layout.len);
        let x = layout.view(&all);
        let mut out = vec![0; wanted.iter().product()];
        gather_nd(&x, n_batch, &positions, &mut TensorViewMut::new(&mut out, &wanted).unwrap()).unwrap();
        for (index, found) in out.iter().enumerate() {
            prop_assert_eq!(*found, x.get(&from(&coordinates(index, &wanted))).unwrap());
        }
        if n_batch > 0 {
            return Ok(());
        }
        let updates = elements::<u16>(out.len());
        let mut largest: Vec<u16> = x.iter().collect();
        for (index, update) in updates.iter().enumerate() {
            let place = from(&coordinates(index, &wanted));
            let to = place.iter().zip(extents).fold(0, |sum, (own, extent)| sum * extent + own);
            largest[to] = largest[to].max(*update);
        }
        let mut out = vec![0; largest.len()];
        let given = TensorView::new(&updates, &wanted).unwrap();
        scatter_nd(u16::max, &x, &positions, &given, &mut TensorViewMut::new(&mut out, extents).unwrap()).unwrap();
        prop_assert_eq!(out, largest);
    }

    #[test]
    fn positions_are_marked(layout in layouts(3, 4), depth in 0..4_usize, dimension in 0..4_usize) {
        prop_assume!(dimension <= layout.extents.len());
        let list: Vec<i8> = elements::<u8>(layout.len).iter().map(|x| i8::try_from(x % 11).unwrap() - 5).collect();
        let positions = layout.view(&list);
        let extents = one_hot_extents(&layout.extents, depth, dimension).unwrap();
        let mut out = vec![7_i32; extents.iter().product()];
        one_hot(&positions, dimension, [-1, 1], &mut TensorViewMut::new(&mut out, &extents).unwrap()).unwrap();
        for (index, found) in out.iter().enumerate() {
            let mut place = coordinates(index, &extents);
            let own = i64::try_from(place.remove(dimension)).unwrap();
            let position = i64::from(positions.get(&place).unwrap());
            let is_on = position == own || position + i64::try_from(depth).unwrap() == own;
            prop_assert_eq!(*found, if is_on { 1 } else { -1 });
        }
    }
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, Error>, message: &str) {
    assert_eq!(result.unwrap_err().message(), message);
}

#[test]
fn what_does_not_fit_is_told() {
    fails(
        LayoutCopy::transpose(&[2, 3], &[0, 0]),
        "[0, 0] does not name each of 2 dimensions once",
    );
    fails(
        LayoutCopy::tile(&[usize::MAX / 2], &[3]),
        "the extent of dimension 0 of the result exceeds the largest integer",
    );
    fails(
        LayoutCopy::pad(&[2], &[(-2, -1)], Edge::Constant),
        "-2 before and -1 behind cut off more of dimension 0 than its extent, 2",
    );
    fails(
        LayoutCopy::pad(&[0], &[(1, 0)], Edge::Wrap),
        "dimension 0 has no elements that could be put around it",
    );
    assert!(LayoutCopy::pad(&[2], &[(i64::MIN, i64::MAX)], Edge::Wrap).is_err());
    fails(
        LayoutCopy::pad(&[usize::MAX - 3], &[(i64::MAX, 4)], Edge::Constant),
        "the extent of dimension 0 of the result exceeds the largest integer",
    );
    fails(
        LayoutCopy::slice(&[2], &[Slice::new(0, 1, 0)]),
        "a slice has a step below or above 0, found 0",
    );
    fails(
        LayoutCopy::split(&[5], 0, &[2, usize::MAX]).map(|_| ()),
        "parts of [2, 18446744073709551615] do not add up to the extent of dimension 0, 5",
    );
    fails(
        LayoutCopy::reverse(&[2], &[1]),
        "there is no dimension 1: the tensor has 1",
    );
    fails(
        LayoutCopy::reverse(&[2], &[0, 0]),
        "dimension 0 is named twice",
    );
    let positions = [0_i64, 1, 3, -4];
    let positions = TensorView::new(&positions, &[2, 2]).unwrap();
    fails(
        LayoutCopy::gather(&[3], 0, &positions),
        "the position at [1, 0] is 3: expected one of 3 positions, from -3 to 2",
    );
    let (x, mut out) = ([1, 2, 3], [0; 4]);
    let x = TensorView::new(&x, &[3]).unwrap();
    let mut out = TensorViewMut::new(&mut out, &[2, 2]).unwrap();
    fails(
        LayoutCopy::all_of(&[3]).run(&x, &mut out),
        "what moves elements of a tensor of shape [3] to one of shape [3] was given tensors of shapes [3] and \
         [2, 2]",
    );
    fails(
        gather_elements(&x, 0, &positions, &mut out),
        "positions of shape [2, 2] along dimension 0 of a tensor of shape [3]: expected as many dimensions, and \
         no larger ones but that",
    );
    fails(concat::<i32>(&[], 0, &mut out), "there is nothing to join");
    assert!(concat(std::slice::from_ref(&x), 1, &mut out).is_err());
    assert!(stack(std::slice::from_ref(&x), 2, &mut out).is_err());
    assert!(one_hot(&positions, 3, [0, 1], &mut out).is_err());
    let (none, mut nothing) = (TensorView::<i64>::new(&[], &[0, 2]).unwrap(), []);
    let mut nothing = TensorViewMut::new(&mut nothing, &[0, 2]).unwrap();
    fails(
        scatter_elements(|x, y| x + y, &none, 0, &positions, &positions, &mut nothing),
        "there are updates, and no position that they could go to",
    );
    fails(
        concat_extents(&[&[1, usize::MAX], &[1, 2]], 1),
        "the extent of dimension 1 of the result exceeds the largest integer",
    );
}

#[test]
fn what_is_empty_may_be_of_any_size() {
    let empty = TensorView::<u8>::new(&[], &[0, 1 << 40, 1 << 40]).unwrap();
    let large = |copy: LayoutCopy| {
        let mut out = TensorViewMut::new(&mut [], copy.extents()).unwrap();
        copy.run(&empty, &mut out).unwrap();
    };
    let extents = empty.extents();
    large(LayoutCopy::transpose(extents, &[2, 0, 1]).unwrap());
    large(LayoutCopy::reverse(extents, &[0, 1, 2]).unwrap());
    large(LayoutCopy::tile(extents, &[1 << 62, 1, 1]).unwrap());
    large(LayoutCopy::pad(extents, &[(0, 0), (1, 2), (3, 1 << 50)], Edge::Reflect).unwrap());
    large(
        LayoutCopy::slice(
            extents,
            &[Slice::ALL, Slice::new(-1, i64::MIN, i64::MIN), Slice::ALL],
        )
        .unwrap(),
    );
    large(LayoutCopy::gather(extents, 1, &TensorView::new(&[5_u8], &[1]).unwrap()).unwrap());
    let mut out = TensorViewMut::new(&mut [], extents).unwrap();
    concat(std::slice::from_ref(&empty), 1, &mut out).unwrap();
    let none = TensorView::<i32>::new(&[], &[0, 1 << 40, 1 << 40]).unwrap();
    gather_elements(&empty, 1, &none, &mut out).unwrap();
    scatter_elements(|x, y| x + y, &empty, 0, &none, &empty, &mut out).unwrap();
    one_hot(
        &none,
        1,
        [0, 1],
        &mut TensorViewMut::new(&mut [0_u8; 0], &[0, 7, 1 << 40, 1 << 40]).unwrap(),
    )
    .unwrap();
}
