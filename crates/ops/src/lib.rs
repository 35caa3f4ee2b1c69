//! The table of tensor operations: one row for each, with everything that is known of the operation without running
//! it.
//!
//! A row ([`OpDef`]) says the operation's name, operands, results, attributes and traits, and how types and extents of
//! its results follow ([`Infer`]). The compiler's passes, eager calls, the verifier and the documentation read these
//! rows; no other list of operations exists. A [`Table`] has them and those that a program adds. Kernels, which run operations, are elsewhere.
//!
//! Rows of the dialect `graph` are what two formats of models need, or a pass looks at: a family is a file. What one
//! format alone has are library rows, a file or folder for each format. How a format's names and attributes become
//! rows is in [`names`].
//!
//! ```
//! use tfrt_ops::{Attrs, Dim, Fact, find, infer};
//!
//! let relu = find("relu").unwrap();
//! let x = Fact::new(Some(tfrt_bef::DType::F32), Some([Dim::symbol("N"), Dim::Known(3)].into_iter().collect()));
//! let y = infer(relu, &[Some(x.clone())], Attrs::new(&(), relu.attrs), 1, &mut |_, _| Default::default());
//! assert_eq!(y.unwrap()[0], x);
//! ```

mod attrs;
mod axes;
mod control;
mod def;
mod dim;
pub mod einsum;
mod fact;
mod infer;
pub mod names;
mod onnx;
mod pointwise;
mod products;
mod quantized;
mod query;
mod stablehlo;
mod structure;
mod table;
mod test;
pub mod tf;
mod training;
mod windows;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use attrs::{AttrSource, AttrValue, Attrs, TensorValue};
pub use def::{
    Arity, AttrDef, AttrDefault, AttrKind, Cost, ElementFamily, Exactness, Limit, OpDef,
    PointwiseFn, Traits, Types, ValueDef, When,
};
pub use dim::{Dim, Dims, Polynomial};
pub use fact::{Fact, Facts, MOST_VALUES, product, unknown_dims};
pub use infer::{Infer, InferCall, InferError, StaticInts, axis_of, broadcast, infer, without};
pub use query::KernelQuery;
pub use table::{AddError, AddedRows, Table, intern};

/// The families of operations, each a list of rows.
pub const FAMILIES: &[&[OpDef]] = &[
    pointwise::OPS,
    structure::OPS,
    axes::OPS,
    products::OPS,
    windows::OPS,
    quantized::OPS,
    control::OPS,
    onnx::axes::OPS,
    onnx::elements::OPS,
    onnx::images::OPS,
    onnx::losses::OPS,
    onnx::microsoft::OPS,
    onnx::ml::OPS,
    onnx::products::OPS,
    onnx::random::OPS,
    onnx::sequences::OPS,
    onnx::signals::OPS,
    onnx::strings::OPS,
    onnx::structure::OPS,
    onnx::training::OPS,
    tf::OPS,
    tf::arrays::OPS,
    tf::blocks::OPS,
    tf::detection::OPS,
    tf::diagonals::OPS,
    tf::images::OPS,
    tf::lists::OPS,
    tf::numbers::OPS,
    tf::optimizers::OPS,
    tf::search::OPS,
    tf::segments::OPS,
    tf::shapes::OPS,
    tf::strings::OPS,
    tf::queues::OPS,
    tf::tables::OPS,
    tf::variables::OPS,
    tf::volumes::OPS,
    stablehlo::OPS,
    training::OPS,
    test::OPS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static OpDef>> =
    LazyLock::new(|| all().map(|op| (op.name, op)).collect());

/// Returns all rows.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().copied().flatten()
}

/// Returns the row of a name.
pub fn find(name: &str) -> Option<&'static OpDef> {
    BY_NAME.get(name).copied()
}

/// Types of floating-point numbers.
pub(crate) const FLOATS: &[tfrt_bef::DType] = {
    use tfrt_bef::DType as D;
    &[
        D::F16,
        D::Bf16,
        D::F32,
        D::F64,
        D::F8E4M3FN,
        D::F8E4M3FNUZ,
        D::F8E5M2,
        D::F8E5M2FNUZ,
        D::F8E8M0,
        D::F4E2M1,
        D::F8E3M4,
        D::F8E4M3,
        D::F8E4M3B11FNUZ,
        D::F6E2M3,
        D::F6E3M2,
    ]
};
