//! The types of buffers: `memref<2x?xf32, LAYOUT, SPACE>`.

use std::sync::Arc;

use super::{Parsed, Parser};
use crate::{
    attributes::Attribute,
    lexer::Mark,
    types::{MemRefType, Type},
};

impl Parser<'_> {
    pub(super) fn memref_type(&mut self) -> Parsed<Type> {
        let shape = self.optional_shape()?;
        let element = self.element_type(is_element)?;
        let mut rest = Vec::new();
        while self.eat(Mark::Comma) {
            rest.push(self.attribute()?);
        }
        let rank = shape.as_ref().map_or(0, Vec::len);
        rest.retain(|attribute| !goes_without_saying(attribute, rank));
        Ok(Type::MemRef(Arc::new(MemRefType {
            shape,
            element,
            rest,
        })))
    }
}

fn is_element(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Integer(_)
            | Type::Float(_)
            | Type::Index
            | Type::Complex(_)
            | Type::Vector(_)
            | Type::MemRef(_)
    )
}

/// Returns whether MLIR leaves an attribute of a memref type out: a layout that keeps
/// the order of elements, or the memory space 0.
fn goes_without_saying(attribute: &Attribute, rank: usize) -> bool {
    match attribute {
        Attribute::Integer(space) => space.value.is_zero(),
        Attribute::Opaque(text) => {
            is_identity(text, rank)
                || (rank == 1
                    && matches!(text.as_str(), "strided<[1]>" | "strided<[1], offset: 0>"))
        }
        _ => false,
    }
}

/// Returns whether a text is as `affine_map<(d0, d1) -> (d0, d1)>`.
fn is_identity(text: &str, rank: usize) -> bool {
    let inner = text.strip_prefix("affine_map<(");
    let inner = inner.and_then(|text| text.strip_suffix(")>"));
    let Some((from, to)) = inner.and_then(|text| text.split_once(") -> (")) else {
        return false;
    };
    let from: Vec<&str> = from.split(',').map(str::trim).collect();
    from.len() == rank && from.iter().copied().eq(to.split(',').map(str::trim))
}
