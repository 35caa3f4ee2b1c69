//! A format of models of one's own: `.calc`, a line for each operation.
//!
//! ```text
//! # Comments go to the end of the line.
//! input x f32[N,4]
//! y = gelu(x)
//! z = wave(y, height=2.0)
//! output z
//! ```
//!
//! Nothing of the runtime knows it. [`FORMAT`] says how a file becomes a module in the dialect `calc`, and what the names
//! in it are: rows of the table of operations, several of them (`silu`), or a row of the format's own, `wave`, with its
//! kernel. [`counters`] is a format whose operations have effects.

#![forbid(unsafe_code)]

use tfrt::import::{Dim, GraphBuilder, Imported, ReadLimits, Source};
use tfrt::ir::{self, Attribute, Diagnostic, Diagnostics, OpState, Type};
use tfrt::kernel::Attr;
use tfrt::ops::names::{Name, NameAttr};
use tfrt::ops::{AttrDef, OpDef};
use tfrt::tensor::Tensor;
use tfrt::{Error, ExecutionContext, Format};

pub mod counters;

/// The format.
pub const FORMAT: Format = Format::new("calc", import)
    .suffixes(&["calc"])
    .recognises(|head| head.bytes.starts_with(b"input "))
    .names(&[
        Name::new("add", "add"),
        Name::new("gelu", "gelu"),
        Name::new("matmul", "dot"),
        Name::new("mul", "mul"),
        Name::new("rsqrt", "rsqrt"),
        Name::new("softmax", "softmax"),
        Name::new("sum", "reduce").attrs(&[
            NameAttr::Text("kind", "sum"),
            NameAttr::Renamed("axes", "over"),
        ]),
    ])
    .expand(&[("silu", |here| {
        let x = here.operand(0)?;
        let y = here.add("graph.sigmoid", &[x], &[]);
        Ok(vec![here.add("graph.mul", &[x, y], &[])])
    })])
    .rows(&[OpDef::new("calc.wave", "A triangle wave of this height.")
        .attrs(&[AttrDef::float("height", 1.0)])])
    .kernels(|registry| {
        registry.add("cpu.calc.wave", wave);
    });

/// Gets all attributes that the row has, those that a file leaves out as well.
fn wave(x: &Tensor, height: Attr<f32>, execution: &ExecutionContext) -> Result<Tensor, Error> {
    let one = |x: f32| *height * (1.0 - (x.rem_euclid(2.0) - 1.0).abs());
    let y = x.as_dense()?.map(execution.host().allocator(), one)?;
    Ok(y.into())
}

fn import(source: &Source<'_>, limits: &ReadLimits) -> Result<Imported, Diagnostics> {
    let text = source.text()?;
    read(&text, limits, |graph, line| {
        if is_end(graph, &text, line)? {
            return Ok(());
        }
        let call = line.split_once('=').and_then(|(name, call)| {
            let (operation, operands) = call.trim().strip_suffix(')')?.split_once('(')?;
            Some((name.trim(), operation, operands))
        });
        let wrong = || wrong(line, "expected 'input', 'output' or NAME = OPERATION(..)");
        let (name, operation, operands) = call.ok_or_else(wrong)?;
        let mut state = OpState::new(format!("calc.{operation}"));
        for operand in operands.split(',').map(str::trim) {
            state = match operand.split_once('=') {
                Some((key, number)) => state.attribute(key.trim(), attribute(number.trim())?),
                None => state.operand(graph.value(operand).map_err(|error| (operand, error))?),
            };
        }
        let made = graph.tensor(name, state.location(text.location_of(operation)));
        made.map(drop).map_err(|error| (line, error))
    })
}

/// An error with the part of the text that it is about.
type Wrong<'s> = (&'s str, String);

fn wrong<'s>(part: &'s str, message: &str) -> Wrong<'s> {
    (part, format!("{message}, found '{part}'"))
}

/// Reads a text line by line; says all that is wrong with it.
fn read<'s>(
    text: &'s ir::Source,
    limits: &ReadLimits,
    mut line: impl FnMut(&mut GraphBuilder, &'s str) -> Result<(), Wrong<'s>>,
) -> Result<Imported, Diagnostics> {
    let (mut graph, mut errors) = (GraphBuilder::new(limits), Diagnostics::default());
    for code in text.text().lines() {
        let code = code.split('#').next().unwrap_or_default().trim();
        if code.is_empty() {
            continue;
        }
        if let Err((part, message)) = line(&mut graph, code) {
            errors.push(Diagnostic::error("CALC1", message).at(text, text.span_of(part)));
        }
    }
    errors.into_result()?;
    Ok(graph.finish())
}

/// `input x f32[N,4]`, `output y`: returns whether a line is one of these.
fn is_end<'s>(
    graph: &mut GraphBuilder,
    text: &ir::Source,
    line: &'s str,
) -> Result<bool, Wrong<'s>> {
    let mut words = line.splitn(3, ' ').map(str::trim);
    match [(); 3].map(|()| words.next().unwrap_or_default()) {
        ["output", name, ""] => graph.output(name).map_err(|error| (name, error))?,
        ["input", name, ty] => {
            let extents = ty.strip_prefix("f32[").and_then(|ty| ty.strip_suffix(']'));
            let extents = extents.ok_or_else(|| wrong(ty, "expected f32[EXTENT, ..]"))?;
            let extent = |text: &'s str| match text.trim().parse::<u32>() {
                Ok(size) => Dim::Known(size.into()),
                Err(_) => Dim::Named(text.trim()),
            };
            let extents: Vec<Dim<'_>> = extents.split(',').map(extent).collect();
            graph.input(name, Type::F32, Some(&extents), text.location_of(name));
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn attribute(number: &str) -> Result<Attribute, Wrong<'_>> {
    if let Ok(integer) = number.parse::<i64>() {
        return Ok(Attribute::integer(integer, Type::I64));
    }
    let float = number.parse().map(Attribute::f32);
    float.map_err(|_| wrong(number, "expected a number"))
}
