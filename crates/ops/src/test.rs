//! Rows of operations that tests call: those of the original runtime's dialect `tfrt_test`. Errors are in its words.

use tfrt_bef::DType;

use crate::attrs::AttrValue;
use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::fact::Fact;
use crate::infer::{Infer, InferCall, InferError, without};
use crate::tf::{dims_text, text};

const X: ValueDef = ValueDef::any("x");
const Y: ValueDef = ValueDef::any("y");
const TWO: &[ValueDef] = &[X, ValueDef::any("other")];
const SHAPE: ValueDef = ValueDef::set("shape", &[DType::I64]);
const AXIS: AttrDef = AttrDef::new("axis", AttrKind::Int).required();

/// Makes the row of an operation on tensors of any type.
const fn of(name: &'static str, summary: &'static str, inputs: &'static [ValueDef]) -> OpDef {
    OpDef::new(name, summary).inputs(inputs).results(&[Y])
}

/// Makes the row of an operation that returns its operand.
const fn same(name: &'static str, summary: &'static str) -> OpDef {
    of(name, summary, &[X]).infer(Infer::SameAsFirst)
}

const fn sum(name: &'static str, summary: &'static str) -> OpDef {
    of(name, summary, TWO).infer(Infer::By(added))
}

pub(crate) const OPS: &[OpDef] = &[
    sum("tfrt_test.add", "The sum of two tensors of one shape."),
    sum(
        "tfrt_test.add.denseonly",
        "The sum of two dense tensors of one shape.",
    ),
    sum(
        "tfrt_test.add.denseonly2",
        "The sum of two dense tensors, as a tensor that is to come.",
    ),
    sum(
        "tfrt_test.add.denseonly3",
        "The sum of two dense tensors, element by element on the queue's workers.",
    ),
    of(
        "tfrt_test.argmax",
        "Where in each row the largest element is, as i32.",
        &[X],
    )
    .attrs(&[AXIS])
    .infer(Infer::By(argmax)),
    same(
        "tfrt_test.async.noop",
        "The tensor itself, by a task of its own.",
    ),
    of(
        "tfrt_test.async.noop_no_md",
        "The tensor itself, by a task of its own, of a shape that is known late.",
        &[X],
    )
    .results(&[Y.data_dependent()])
    .infer(Infer::By(nothing)),
    of(
        "tfrt_test.broadcast",
        "A vector as each row of a matrix.",
        &[X, SHAPE],
    )
    .results(&[Y.by_values()])
    .infer(Infer::By(broadcast)),
    of(
        "tfrt_test.cast",
        "The elements as another type: f32 or f16.",
        &[X],
    )
    .attrs(&[AttrDef::new("type", AttrKind::Text).required()])
    .infer(Infer::By(cast)),
    of(
        "tfrt_test.create_coo_tensor",
        "A sparse tensor, of coordinates and as many elements.",
        &[ValueDef::any("indices"), ValueDef::any("values"), SHAPE],
    )
    .results(&[Y.by_values()])
    .infer(Infer::By(sparse)),
    of(
        "tfrt_test.create_dense_tensor",
        "A dense tensor of the values, or of one for all.",
        &[SHAPE, ValueDef::any("values")],
    )
    .results(&[Y.by_values()])
    .infer(Infer::By(dense)),
    of(
        "tfrt_test.create_from_scalar",
        "A tensor whose elements are all the same.",
        &[SHAPE, ValueDef::any("value")],
    )
    .results(&[Y.by_values()])
    .infer(Infer::By(scalar)),
    of(
        "tfrt_test.equal",
        "1 where two tensors of one shape have the same element, else 0.",
        TWO,
    )
    .infer(Infer::By(equal)),
    same("tfrt_test.error.tensor", "A tensor that fails."),
    same("tfrt_test.identity", "The tensor itself."),
    same(
        "tfrt_test.identity_dense_only",
        "The tensor itself, which is dense.",
    ),
    of(
        "tfrt_test.odd_collector",
        "The odd ones of a vector of integers.",
        &[X],
    )
    .results(&[Y.data_dependent()])
    .infer(Infer::By(nothing)),
    of("tfrt_test.print", "Prints a tensor.", &[X])
        .results(&[])
        .impure()
        .infer(Infer::By(nothing)),
    of(
        "tfrt_test.print_address",
        "Prints where the elements of a tensor lie.",
        &[X],
    )
    .results(&[])
    .impure()
    .infer(Infer::By(nothing)),
    of(
        "tfrt_test.reduce_mean",
        "The means of columns; of integers, rounded towards 0.",
        &[X],
    )
    .attrs(&[AXIS])
    .infer(Infer::By(mean)),
    of(
        "tfrt_test.test_optional_arg",
        "The second tensor if there is one, else the first.",
        &[X, ValueDef::any("other").optional()],
    )
    .infer(Infer::By(second)),
    of(
        "tfrt_test.test_variadic_arg",
        "The second tensor if there are several, else the first.",
        &[X.rest(1)],
    )
    .infer(Infer::By(second)),
];

fn nothing(_: &mut InferCall<'_>) -> Result<(), InferError> {
    Ok(())
}

fn second(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let y = call.input(usize::from(call.has(1))).clone();
    call.set(0, y);
    Ok(())
}

/// Returns an error if two tensors differ in type or shape.
fn alike(call: &mut InferCall<'_>, [types, shapes]: [&str; 2]) -> Result<(), InferError> {
    let (x, y) = (call.input(0).clone(), call.input(1));
    if x.dtype.zip(y.dtype).is_some_and(|(x, y)| x != y) {
        return Err(InferError::new(format!(
            "{types}: {} and {}",
            text(&x),
            text(y)
        )));
    }
    let Ok(agreed) = call.agree(&x, y) else {
        let [x, y] = [&x, y].map(|fact| fact.dims.as_deref().map(dims_text).unwrap_or_default());
        return Err(InferError::new(format!("{shapes}: {x} and {y}")));
    };
    call.give(0, agreed.dtype, agreed.dims);
    Ok(())
}

fn added(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let words = [
        "incompatible dtypes for test.add",
        "arguments of test.add must have same shape",
    ];
    alike(call, words)
}

fn equal(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let words = [
        "incompatible dtypes for element-wise op",
        "arguments to element-wise op must have identical shapes",
    ];
    alike(call, words)
}

/// Returns the operand's extents without the dimension that `axis` names, the only one that the operation knows.
fn along(
    call: &mut InferCall<'_>,
    supported: usize,
    words: &str,
    dtype: Option<DType>,
) -> Result<(), InferError> {
    let axis = call.attrs.int("axis").unwrap_or(0);
    let x = call.input(0).clone();
    let dims = match x.dims {
        Some(dims) => {
            let rank = dims.len();
            let place = usize::try_from(axis).ok().filter(|axis| *axis < rank);
            match place {
                Some(place) if place == supported => Some(without(&dims, &[place], false)),
                Some(_) => {
                    let message = format!("{words}: {axis}, expected {supported}");
                    return Err(InferError::new(message));
                }
                None => {
                    let message = format!("axis must less than input rank: {axis} of {rank}");
                    return Err(InferError::new(message));
                }
            }
        }
        None => None,
    };
    call.give(0, dtype.or(x.dtype), dims);
    Ok(())
}

fn argmax(call: &mut InferCall<'_>) -> Result<(), InferError> {
    along(call, 1, "unsupported axis for argmax", Some(DType::I32))
}

fn mean(call: &mut InferCall<'_>) -> Result<(), InferError> {
    along(call, 0, "unsupported axis for reduce_mean", None)
}

/// Returns the extents that an operand states.
fn stated(call: &InferCall<'_>, index: usize) -> Result<Option<Dims>, InferError> {
    let dims = crate::structure::dims_of(call.input(index));
    let mut known = dims.iter().flatten().map(Dim::value).enumerate();
    let negative = known.find_map(|(at, extent)| Some((at, extent.filter(|extent| *extent < 0)?)));
    match negative {
        Some((at, extent)) => {
            Err(call.error(format_args!("the extent of dimension {at} is {extent}")))
        }
        None => Ok(dims),
    }
}

fn broadcast(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, shape) = (call.input(0).clone(), stated(call, 1)?);
    if let Some(shape) = &shape {
        let [_, columns] = &shape[..] else {
            let shape = dims_text(shape);
            return Err(InferError::new(format!(
                "result shape must be 2 dimensional (for now), found {shape}"
            )));
        };
        let fits = |own: &Dims| match &own[..] {
            [own] => own.value().is_none() || columns.value().is_none() || own == columns,
            _ => false,
        };
        if let Some(own) = x.dims.as_ref().filter(|own| !fits(own)) {
            let (x, shape) = (dims_text(own), dims_text(shape));
            return Err(InferError::new(format!(
                "input dimension and target shape mismatch: {x} and {shape}"
            )));
        }
    }
    call.give(0, x.dtype, shape);
    Ok(())
}

fn cast(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dtype = match call.attrs.get("type") {
        Some(AttrValue::Bytes(b"f32")) => DType::F32,
        Some(AttrValue::Bytes(b"f16")) => DType::F16,
        _ => {
            let found = call.attrs.text("type").escape_debug();
            let message = format!("only casting to f32/f16 is supported, found '{found}'");
            return Err(InferError::new(message));
        }
    };
    let dims = call.input(0).dims.clone();
    call.give(0, Some(dtype), dims);
    Ok(())
}

fn scalar(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (dims, value) = (stated(call, 0)?, call.input(1));
    let (op, dtype) = (call.op.name, value.dtype);
    if value.rank().is_some_and(|rank| rank > 0) {
        return Err(InferError::new(format!("{op} must have 'value' attribute")));
    }
    if dtype == Some(DType::String) {
        return Err(InferError::new(format!("{op} unsupported dtype")));
    }
    call.give(0, dtype, dims);
    Ok(())
}

fn dense(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (dims, values) = (stated(call, 0)?, call.input(1));
    let dtype = values.dtype;
    if let Some(found) = values.rank().filter(|rank| *rank != 1) {
        return Err(InferError::new(format!(
            "'values' attribute should be an array of values, found {found} dimensions"
        )));
    }
    let n = dims
        .as_deref()
        .and_then(|dims| crate::product(dims).value());
    let found = values.n_elements().value();
    if let (Some(found), Some(dims), Some(n)) = (found, &dims, n)
        && found != 1
        && n != found
    {
        let shape = dims_text(dims);
        return Err(InferError::new(format!(
            "size of 'values' must either be 1 or match num of elements. There are {found} for shape {shape}"
        )));
    }
    call.give(0, dtype, dims);
    Ok(())
}

fn sparse(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let op = call.op.name;
    for (index, rank, name) in [(0, 2, "indices"), (1, 1, "values")] {
        let input: &Fact = call.input(index);
        if let Some(dims) = input.dims.as_ref().filter(|dims| dims.len() != rank) {
            let found = dims_text(dims);
            return Err(InferError::new(format!(
                "{op} {name} input must be rank {rank}, found shape {found}"
            )));
        }
    }
    let (dims, indices) = (stated(call, 2)?, call.input(0));
    if let (Some(dims), Some(own)) = (&dims, &indices.dims)
        && own[1]
            .value()
            .is_some_and(|n| Dim::Known(n) != Dim::from(dims.len()))
    {
        let (indices, shape) = (dims_text(own), dims_text(dims));
        return Err(InferError::new(format!(
            "each test.create_coo_tensor index must have the same size as shape attribute: {indices} for {shape}"
        )));
    }
    if let Some(dtype) = indices.dtype.filter(|dtype| *dtype != DType::I64) {
        return Err(InferError::new(format!(
            "{op} indices input must be i64, found {dtype}"
        )));
    }
    let dtype = call.input(1).dtype;
    call.give(0, dtype, dims);
    Ok(())
}
