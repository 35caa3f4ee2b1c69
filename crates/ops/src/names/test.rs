//! The mapping of the dialect `tfrt_test`: operations that are rows under another name, or take attributes that are
//! operands of rows. All others are library rows of the dialect.

use super::{AttrForm, Name, NameOperand};
use NameOperand::{At, Attr};

/// The mappings, sorted by name, without the dialect.
pub const NAMES: &[Name] = &[
    Name::new("broadcast", "tfrt_test.broadcast")
        .operands(&[At(0), Attr("shape", AttrForm::Shape)]),
    Name::new("create_coo_tensor", "tfrt_test.create_coo_tensor").operands(&[
        At(0),
        At(1),
        Attr("shape", AttrForm::Shape),
    ]),
    Name::new("create_dense_tensor", "tfrt_test.create_dense_tensor").operands(&[
        Attr("shape", AttrForm::Shape),
        Attr("values", AttrForm::Numbers),
    ]),
    Name::new("create_from_scalar", "tfrt_test.create_from_scalar").operands(&[
        Attr("shape", AttrForm::Shape),
        Attr("value", AttrForm::Number),
    ]),
    Name::new("matmul", "dot").ranks(&[(0, 2), (1, 2)]),
    Name::new("relu", "relu"),
];

/// Returns the mapping of an operation of the dialect.
pub fn name(name: &str) -> Option<&'static Name> {
    super::find(NAMES, name)
}
