//! Tests of properties that every row has.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use tfrt_bef::DType;
use tfrt_import::onnx::schema::{self, AttributeKind, Operator};
use tfrt_ops::{
    Arity, AttrDefault, AttrKind, AttrValue, Attrs, Cost, Dim, Exactness, Fact, Facts, OpDef,
    PointwiseFn, Table, Traits, all, find, infer, names,
};

#[test]
fn names_are_unique_and_summaries_are_sentences() {
    let mut seen = BTreeSet::new();
    for op in all() {
        assert!(seen.insert(op.name), "{} is there twice", op.name);
        assert!(op.summary.ends_with('.'), "{}: {}", op.name, op.summary);
        let attrs: BTreeSet<&str> = op.attrs.iter().map(|attr| attr.name).collect();
        assert_eq!(
            attrs.len(),
            op.attrs.len(),
            "{}: an attribute is there twice",
            op.name
        );
        assert!(std::ptr::eq(find(op.name).unwrap(), op));
    }
}

#[test]
fn at_most_25_results_depend_on_elements() {
    let is_data_dependent = |op: &&OpDef| {
        op.results
            .iter()
            .any(|result| result.exactness == Exactness::DataDependent)
            // What a resource or a list holds is no matter of operands.
            && !op.is(Traits::READS)
            && !op.name.starts_with("tf.TensorList")
    };
    let names: Vec<&str> = all().filter(is_data_dependent).map(|op| op.name).collect();
    let expected = [
        "nonzero",
        "unique",
        "onnx.ImageDecoder",
        "onnx.NonMaxSuppression",
        "onnx.microsoft.Tokenizer",
        "onnx.ml.CastMap",
        "onnx.ConcatFromSequence",
        "onnx.Loop",
        "onnx.OptionalGetElement",
        "onnx.SequenceAt",
        "onnx.StringNormalizer",
        "onnx.StringSplit",
        "onnx.Compress",
        "onnx.training.Gradient",
        "tf.NonMaxSuppressionV3",
        "tf.NonMaxSuppressionV4",
        "tf.UniqueV2",
        "tf.UniqueWithCountsV2",
        "tf.Where",
        "tf.RaggedTensorToTensor",
        "tf.StringSplitV2",
        "tfrt_test.async.noop_no_md",
        "tfrt_test.odd_collector",
    ];
    assert_eq!(names, expected);
}

#[test]
fn pointwise_rows_have_one_result_and_no_regions() {
    for op in all().filter(|op| op.is(Traits::POINTWISE)) {
        assert_eq!(op.results.len(), 1, "{}", op.name);
        assert!(op.regions.is_empty() && op.is(Traits::PURE), "{}", op.name);
    }
}

/// Tests that no row is pure and draws random numbers or touches resources: passes look at one or the other.
#[test]
fn pure_rows_neither_draw_nor_touch_resources() {
    let row = OpDef::new("my.row", "");
    for (traits, is_repeated, has_effects) in [
        (Traits::NONE, true, false),
        (Traits::RANDOM, false, false),
        (Traits::READS, false, true),
        (Traits::WRITES, false, true),
        (Traits::RANDOM | Traits::WRITES, false, true),
    ] {
        let row = row.traits(traits);
        let found = (row.is_deterministic(), row.has_effects());
        assert_eq!(found, (is_repeated, has_effects), "{traits:?}");
        assert_eq!(row.is(Traits::PURE), is_repeated, "{traits:?}");
    }
    assert!(row.impure().has_effects() && !row.impure().is_deterministic());
    for op in all() {
        assert_eq!(op.is(Traits::PURE), op.is_deterministic(), "{}", op.name);
        // Those of tests print; a handle of a new variable is another one each time.
        let is_known = op.name.starts_with("tfrt_test.print")
            || op.name == "tf.VarHandleOp"
            || op.name == "tf.TensorArrayV3"
            || op.name == "tf.FIFOQueueV2"
            || op.name.contains("HashTable");
        let touches = op.is(Traits::READS) || op.is(Traits::WRITES);
        assert!(!op.has_effects() || touches || is_known, "{}", op.name);
    }
}

/// Tests that the row of each operation of ONNX has the attributes of its newest form; what is left out has a reason.
#[test]
fn rows_have_what_the_newest_forms_have() {
    for (domain, prefix) in [
        ("", ""),
        ("ai.onnx.ml", "ml."),
        ("ai.onnx.preview", "preview."),
        ("ai.onnx.preview.training", "training."),
        ("com.microsoft", "microsoft."),
    ] {
        let names: BTreeSet<&str> = schema::names(domain).collect();
        assert!(!names.is_empty());
        for name in names {
            // Of ONNX Runtime alone, and made of others.
            if name.ends_with("SimplifiedLayerNormalization") {
                continue;
            }
            let newest = schema::lookup(domain, name, i64::MAX).unwrap();
            let own = format!("{prefix}{name}");
            match names::onnx::row(&own) {
                Some(row) => has_what_is_newest(row, &own, &newest),
                // Of this one most are made of others, or are refused.
                None => assert_eq!(domain, "com.microsoft", "{own} has no row"),
            }
        }
    }
}

fn has_what_is_newest(row: &OpDef, own: &str, newest: &Operator) {
    if names::onnx::name(own).is_some() {
        return;
    }
    let inputs: Vec<&str> = newest.inputs.iter().map(|input| input.name).collect();
    let found: Vec<&str> = row.inputs.iter().map(|input| input.name).collect();
    // A loop's operands have a name for each of three roles.
    if own != "Loop" {
        assert_eq!(found, inputs, "{own}");
    }
    assert_eq!(row.results.len(), newest.outputs.len(), "{own}");
    let (graphs, others): (Vec<_>, Vec<_>) = newest
        .attributes
        .iter()
        .partition(|attr| attr.kind == AttributeKind::Graph);
    assert_eq!(row.regions.len(), graphs.len(), "{own}");
    for attr in others {
        let def = row
            .attr(attr.name)
            .unwrap_or_else(|| panic!("{own} has no {}", attr.name));
        assert_eq!(def.kind, kind(attr.kind), "{own}.{}", attr.name);
        assert_eq!(
            def.default == AttrDefault::Required,
            attr.is_required,
            "{own}.{}",
            attr.name
        );
    }
}

#[test]
fn types_have_the_numbers_of_onnx() {
    for number in (1..40).filter(|number| names::onnx::dtype(*number).is_some()) {
        let dtype = names::onnx::dtype(number).unwrap();
        assert_eq!(names::onnx::number(dtype), Some(number));
    }
}

#[test]
fn rows_are_added_all_or_none_and_go_with_their_handle() {
    let row = |name: &str| OpDef::new(tfrt_ops::intern(name), "One.");
    let table = Table::default();
    let first = table.add(&[row("my.a"), row("my.b")]).unwrap();
    for (name, message) in [
        ("my.a", "there is a row 'my.a' already"),
        (
            "relu",
            "expected a row called DIALECT.NAME in a dialect of its own, found 'relu'",
        ),
        (
            "graph.x",
            "expected a row called DIALECT.NAME in a dialect of its own, found 'graph.x'",
        ),
        (
            "my.\n",
            "expected a row called DIALECT.NAME in a dialect of its own, found 'my.\\n'",
        ),
    ] {
        let error = table.add(&[row("my.c"), row(name)]).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(table.find("my.c").is_none());
    }
    assert_eq!(table.clone().find("my.b").unwrap().name, "my.b");
    assert!(Table::default().find("my.b").is_none());
    drop(first);
    assert!(table.find("my.a").is_none());
    assert!(std::ptr::eq(
        tfrt_ops::intern("my.a"),
        tfrt_ops::intern(&format!("my.{}", "a"))
    ));
}

fn kind(kind: AttributeKind) -> AttrKind {
    match kind {
        AttributeKind::Float => AttrKind::Float,
        AttributeKind::Int => AttrKind::Int,
        AttributeKind::String => AttrKind::Text,
        AttributeKind::Ints => AttrKind::Ints,
        AttributeKind::Floats => AttrKind::Floats,
        AttributeKind::Strings => AttrKind::Texts,
        AttributeKind::Type => AttrKind::Type,
        AttributeKind::Graph => AttrKind::Region,
        _ => AttrKind::Tensor,
    }
}

/// Returns facts of few kinds, so that operands fit each other often.
fn fact() -> impl Strategy<Value = Fact> {
    let dim = prop_oneof![
        1 => Just(Dim::Unknown),
        1 => Just(Dim::symbol("N")),
        4 => (0..5_i64).prop_map(Dim::Known),
    ];
    let dims = prop::option::weighted(0.9, prop::collection::vec(dim, 0..5));
    let dtype = prop::sample::select(vec![
        None,
        Some(DType::F32),
        Some(DType::I64),
        Some(DType::I1),
    ]);
    let list = prop::collection::vec(-2..5_i64, 0..5);
    let values = list.prop_map(|values| Fact {
        values: Some(values.iter().map(|value| Dim::Known(*value)).collect()),
        ..Fact::new(
            Some(DType::I64),
            Some([Dim::from(values.len())].into_iter().collect()),
        )
    });
    prop_oneof![
        3 => (dtype, dims).prop_map(|(dtype, dims)| Fact::new(dtype, dims.map(|dims| dims.into_iter().collect()))),
        1 => values,
    ]
}

/// Returns attributes of the kinds that a row asks for.
fn attributes(
    op: &'static OpDef,
) -> impl Strategy<Value = Vec<(&'static str, AttrValue<'static>)>> {
    let one = |attr: &'static tfrt_ops::AttrDef| {
        let value = match attr.kind {
            AttrKind::Int => (-3..4_i64).prop_map(AttrValue::Int).boxed(),
            AttrKind::Float => (0..3).prop_map(|n| AttrValue::Float(f64::from(n))).boxed(),
            AttrKind::Ints => prop::collection::vec(-1..4_i64, 0..5)
                .prop_map(|list| AttrValue::Ints(list.into()))
                .boxed(),
            AttrKind::Type => Just(AttrValue::Type(DType::F16)).boxed(),
            AttrKind::Text => {
                let words = vec![
                    "layer",
                    "batch",
                    "lstm",
                    "SAME_UPPER",
                    "VALID",
                    "none",
                    "ij,jk->ik",
                    "...i,i",
                    "sum",
                    "x",
                ];
                prop::sample::select(words)
                    .prop_map(|word| AttrValue::Bytes(word.as_bytes()))
                    .boxed()
            }
            _ => Just(AttrValue::Other).boxed(),
        };
        prop::option::of(value).prop_map(|value| value.map(|value| (attr.name, value)))
    };
    let all: Vec<_> = op.attrs.iter().map(one).collect();
    all.prop_map(|all| all.into_iter().flatten().collect())
}

fn n_inputs(op: &OpDef) -> std::ops::RangeInclusive<usize> {
    let least = op
        .inputs
        .iter()
        .filter(|input| input.arity == Arity::One)
        .count();
    let has_rest = op
        .inputs
        .iter()
        .any(|input| matches!(input.arity, Arity::Rest(_)));
    least..=op.inputs.len() + if has_rest { 3 } else { 0 }
}

/// Returns the seed of random cases, and the factor of their number: `TFRT_RANDOM=SEED` or `SEED:TIMES`.
fn drawn() -> (u64, u32) {
    let text = std::env::var("TFRT_RANDOM").unwrap_or_default();
    let (seed, times) = text.split_once(':').unwrap_or((&text, ""));
    (seed.parse().unwrap_or(0), times.parse().unwrap_or(1))
}

/// Tests that rules answer whatever they are asked, and know no less where more is known.
#[test]
fn rules_never_panic_and_are_monotone() {
    let (seed, times) = drawn();
    let mut wrong = Vec::new();
    for op in all() {
        let strategy = (
            prop::collection::vec(prop::option::weighted(0.9, fact()), n_inputs(op)),
            attributes(op),
            any::<u64>(),
            1..4_usize,
        );
        let mut runner = TestRunner::new(Config {
            cases: 400 * times,
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            ..Config::default()
        });
        let outcome = runner.run(&strategy, |(inputs, attrs, forgotten, n_results)| {
            let ask = |inputs: &[Option<Fact>]| {
                let source = &attrs[..];
                let mut regions = |_, arguments: &[Fact]| Facts::from(arguments);
                infer(op, inputs, Attrs::new(&source, op.attrs), n_results, &mut regions)
            };
            let Ok(known) = ask(&inputs) else {
                return Ok(());
            };
            let fewer: Vec<Option<Fact>> = inputs.iter().enumerate().map(|(at, input)| forget(input, forgotten >> (4 * at))).collect();
            match ask(&fewer) {
                Ok(less) => {
                    // Operands that share a type may differ here, which no call survives.
                    let dtypes: BTreeSet<_> = inputs.iter().flatten().filter_map(|input| input.dtype).collect();
                    let has_types = dtypes.len() < 2;
                    for (index, (less, more)) in less.iter().zip(&known).enumerate() {
                        prop_assert!(is_implied(less, more, has_types), "{} result {index}: {fewer:?} gave {less:?}, but {inputs:?} gave {more:?}", op.name);
                    }
                }
                Err(error) => prop_assert!(false, "{}: {error} for {fewer:?}, but none for {inputs:?}", op.name),
            }
            Ok(())
        });
        wrong.extend(outcome.err().map(|error| format!("{}: {error}", op.name)));
    }
    assert!(
        wrong.is_empty(),
        "TFRT_RANDOM={seed}:{times}\n{}",
        wrong.join("\n")
    );
}

/// Removes something from a fact, by bits.
fn forget(input: &Option<Fact>, bits: u64) -> Option<Fact> {
    let mut fact = input.clone()?;
    if bits & 1 != 0 {
        fact.dtype = None;
    }
    if bits & 2 != 0 {
        fact.values = None;
    }
    match (bits >> 2) & 3 {
        0 => {
            fact.dims = None;
            fact.values = None;
        }
        1 => {
            if let Some(first) = fact.dims.as_mut().and_then(|dims| dims.first_mut()) {
                *first = Dim::Unknown;
                fact.values = None;
            }
        }
        _ => {}
    }
    Some(fact)
}

/// Returns whether everything that `less` says holds of `more`; symbols are not compared.
fn is_implied(less: &Fact, more: &Fact, has_types: bool) -> bool {
    let dim = |(less, more): (&Dim, &Dim)| less.value().is_none() || less == more;
    let dims = match (&less.dims, &more.dims) {
        (None, _) => true,
        (Some(less), Some(more)) => less.len() == more.len() && less.iter().zip(more).all(dim),
        (Some(_), None) => false,
    };
    dims && (!has_types || less.dtype.is_none() || less.dtype == more.dtype)
}

/// Counts rows by exactness, for the documentation.
#[test]
fn rows_by_exactness() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for op in all() {
        let worst = op.results.iter().map(|result| match result.exactness {
            Exactness::Exact => (0, "exact"),
            Exactness::ByValues => (1, "by values"),
            Exactness::DataDependent => (2, "data-dependent"),
        });
        *counts
            .entry(worst.max().map_or("no result", |(_, word)| word))
            .or_default() += 1;
    }
    println!("{counts:?}");
    assert!(counts["exact"] > 150, "{counts:?}");
}

/// Tests a loop in which one more value changes in each turn, with as many turns as there are values.
#[test]
fn loops_are_followed_for_a_few_turns() {
    let scalar = |value: i64| Fact {
        values: Some(vec![Dim::Known(value)]),
        ..Fact::new(
            Some(DType::I64),
            Some([Dim::Known(1)].into_iter().collect()),
        )
    };
    let row = find("while").unwrap();
    let inputs: Vec<Option<Fact>> = (0..1000).map(|at| Some(scalar(at))).collect();
    let mut n_turns = 0;
    let mut regions = |_, arguments: &[Fact]| {
        n_turns += 1;
        let first = Fact::new(
            arguments[0].dtype,
            Some([Dim::Unknown].into_iter().collect()),
        );
        std::iter::once(first)
            .chain(arguments[..999].iter().cloned())
            .collect()
    };
    let facts = infer(row, &inputs, Attrs::new(&(), row.attrs), 1000, &mut regions).unwrap();
    assert!(facts.iter().all(|fact| *fact == Fact::UNKNOWN));
    assert!(n_turns < 10, "{n_turns}");
}

fn integers(dtype: DType, values: &[i64]) -> Option<Fact> {
    Some(Fact {
        values: Some(values.iter().map(|value| Dim::Known(*value)).collect()),
        ..Fact::new(
            Some(dtype),
            Some([Dim::from(values.len())].into_iter().collect()),
        )
    })
}

/// Tests that a number out of its type's range, which wraps around in a kernel, is unknown.
#[test]
fn integers_that_their_type_does_not_have_are_not_followed() {
    let values = |name: &str, inputs: &[Option<Fact>], attrs: &[(&str, AttrValue<'_>)]| {
        let row = find(name).unwrap();
        let found = infer(
            row,
            inputs,
            Attrs::new(&attrs, row.attrs),
            1,
            &mut |_, _| Facts::new(),
        );
        found.unwrap().remove(0).values
    };
    let sub = |dtype| {
        values(
            "sub",
            &[integers(dtype, &[1, 5]), integers(dtype, &[3, 2])],
            &[],
        )
    };
    assert_eq!(sub(DType::Ui32), Some(vec![Dim::Unknown, Dim::Known(3)]));
    assert_eq!(sub(DType::I32), Some(vec![Dim::Known(-2), Dim::Known(3)]));
    assert_eq!(sub(DType::I8), None);
    let large = i64::from(i32::MAX);
    let sum = values(
        "add",
        &[integers(DType::I32, &[large]), integers(DType::I32, &[1])],
        &[],
    );
    assert_eq!(sum, Some(vec![Dim::Unknown]));
    let to = [("to", AttrValue::Type(DType::I32))];
    let cast = values("cast", &[integers(DType::I64, &[large + 1, 7])], &to);
    assert_eq!(cast, Some(vec![Dim::Unknown, Dim::Known(7)]));
}

#[test]
fn unknown_kinds_are_told_with_those_that_there_are() {
    let row = find("cumulative").unwrap();
    let message = |attrs: &[(&str, AttrValue<'_>)]| {
        let attrs = Attrs::new(&attrs, row.attrs);
        let found = infer(row, &[None, None], attrs, 1, &mut |_, _| Facts::new());
        found.map(|_| ()).map_err(|error| error.to_string())
    };
    let kind = |text: &'static str| [("kind", AttrValue::Bytes(text.as_bytes()))];
    assert_eq!(message(&kind("sum")), Ok(()));
    let expected = "cumulative: attribute 'kind': expected sum, prod, found ";
    assert_eq!(message(&kind("mean")), Err(format!("{expected}'mean'")));
    assert_eq!(message(&[]), Err(format!("{expected}''")));
}

/// Tests that a product costs as much however its operands lie.
#[test]
fn costs_of_products_are_those_of_what_is_summed() {
    let row = find("dot").unwrap();
    let Cost::Fn(cost) = row.cost else {
        panic!("it depends on extents");
    };
    let fact = |dims: &[i64]| {
        let dims = dims.iter().map(|dim| Dim::Known(*dim)).collect();
        Some(Fact::new(Some(DType::F32), Some(dims)))
    };
    for (a, b, flips, expected) in [
        (&[2, 5][..], &[5, 3][..], [0, 0], 30),
        (&[5, 2], &[5, 3], [1, 0], 30),
        (&[2, 5], &[3, 5], [0, 1], 30),
        (&[5, 2], &[3, 5], [1, 1], 30),
        (&[7, 5, 2], &[5, 3], [1, 0], 210),
        (&[5], &[5, 3], [1, 0], 15),
        (&[5, 2], &[5], [1, 1], 10),
        (&[5], &[5], [0, 0], 5),
        (&[0, 5], &[5, 3], [0, 0], 0),
    ] {
        let inputs = [fact(a), fact(b)];
        let [one, other] = flips.map(AttrValue::Int);
        let stated: &[_] = &[("transpose_a", one), ("transpose_b", other)];
        let attrs = Attrs::new(&stated, row.attrs);
        let results = infer(row, &inputs, attrs, 1, &mut |_, _| Facts::new()).unwrap();
        assert_eq!(
            cost(&inputs, &results),
            Some(expected),
            "{a:?} {b:?} {flips:?}"
        );
    }
}

/// Tests that categories of another type are none, as in the kernel.
#[test]
fn one_hot_encoders_take_the_categories_of_their_type() {
    let encoder = find("onnx.ml.OneHotEncoder").unwrap();
    let extents = |dtype: Option<DType>| {
        let x = Fact::new(dtype, Some([Dim::Known(3)].into_iter().collect()));
        let stated: &[(&str, AttrValue<'_>)] =
            &[("cats_int64s", AttrValue::Ints(vec![4, 5].into()))];
        let attrs = Attrs::new(&stated, encoder.attrs);
        let found = infer(encoder, &[Some(x)], attrs, 1, &mut |_, _| Facts::new());
        found.unwrap().remove(0).dims.unwrap().to_vec()
    };
    let three = Dim::Known(3);
    assert_eq!(extents(Some(DType::I64)), [three.clone(), Dim::Known(2)]);
    assert_eq!(extents(Some(DType::String)), [three.clone(), Dim::Known(0)]);
    assert_eq!(extents(None), [three, Dim::Unknown]);
}

/// Tests slices as ONNX defines them: backwards, a start before the tensor is its first element, and an end is none.
#[test]
fn slices_begin_at_an_element() {
    let slice = find("slice").unwrap();
    let values = |n: i64, start: i64, end: i64, step: i64| {
        let list: Vec<i64> = (0..n).collect();
        let one = |value: i64| integers(DType::I64, &[value]);
        let inputs = [
            integers(DType::I64, &list),
            one(start),
            one(end),
            one(0),
            one(step),
        ];
        let attrs = Attrs::new(&(), slice.attrs);
        let found = infer(slice, &inputs, attrs, 1, &mut |_, _| Facts::new());
        found.unwrap().remove(0).numbers().unwrap()
    };
    for (start, end, step, expected) in [
        (-9, -9, -1, &[0][..]),
        (i64::MIN, i64::MIN, -2, &[0]),
        (-9, 0, -1, &[]),
        (9, -9, -2, &[2, 0]),
        (-9, 9, 2, &[0, 2]),
        (1, i64::MAX, -1, &[]),
    ] {
        assert_eq!(
            values(3, start, end, step),
            expected,
            "{start} {end} {step}"
        );
        assert!(values(0, start, end, step).is_empty());
    }
}

/// Tests windows that are larger than their input with its padding.
#[test]
fn windows_of_pools_lie_within_their_input() {
    let pool = find("pool").unwrap();
    let pooled = |size: Dim, pads: i64, auto_pad: &str| {
        let dims = [Dim::Known(1), Dim::Known(1), size.clone(), size];
        let image = Fact::new(Some(DType::F32), Some(dims.into_iter().collect()));
        let attrs = [
            ("kind", AttrValue::Bytes(b"max")),
            ("kernel_shape", AttrValue::Ints(vec![7, 7].into())),
            ("pads", AttrValue::Ints(vec![pads; 4].into())),
            ("auto_pad", AttrValue::Bytes(auto_pad.as_bytes())),
        ];
        let source = &attrs[..];
        let attrs = Attrs::new(&source, pool.attrs);
        let found = infer(pool, &[Some(image)], attrs, 1, &mut |_, _| Facts::new());
        found.map(|found| found[0].dim(2))
    };
    let error = pooled(Dim::Known(3), 1, "NOTSET").unwrap_err().to_string();
    let expected =
        "pool: expected a window within an input of 3 with 1 and 1 around it, found one over 7";
    assert_eq!(error, expected);
    assert_eq!(pooled(Dim::Known(3), 2, "NOTSET"), Ok(Dim::Known(1)));
    assert_eq!(pooled(Dim::Known(3), 0, "SAME_UPPER"), Ok(Dim::Known(3)));
    assert!(pooled(Dim::symbol("N"), 0, "NOTSET").is_ok());
}

/// Tests extents below 0.
#[test]
fn extents_are_not_negative() {
    let fill = find("fill").unwrap();
    let found = infer(
        fill,
        &[integers(DType::I64, &[-5])],
        Attrs::new(&(), fill.attrs),
        1,
        &mut |_, _| Facts::new(),
    );
    assert_eq!(found.unwrap()[0].dim(0), Dim::Unknown);
}

/// Tests that a row whose function depends on an attribute has the attribute, whose default is the first choice.
#[test]
fn functions_are_chosen_by_attributes_of_the_row() {
    for row in tfrt_ops::all() {
        let (name, first) = match row.function {
            PointwiseFn::ByText(name, choices) => (name, AttrDefault::Text(choices[0].0)),
            PointwiseFn::ByInt(name, choices) => (name, AttrDefault::Int(choices[0].0)),
            _ => continue,
        };
        let attr = row.attr(name).expect(row.name);
        let is_fine = attr.default == first || attr.default == AttrDefault::Required;
        assert!(is_fine, "{}: {:?}", row.name, attr.default);
    }
}
