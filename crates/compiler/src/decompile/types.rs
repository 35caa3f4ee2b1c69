//! Decompiles types, and predicts the order in which a compiler meets them.
//!
//! The format writes `1 : si32` and `1 : i32` alike. But the type table lists types in the
//! order in which a compiler meets them; so where `i32` would be new, and the table does not go
//! on with it, it was `si32`.

use std::collections::{HashMap, HashSet};

use tfrt_bef::{BefFile, TypeIndex};
use tfrt_ir::{
    Type, parse_type,
    types::{IntegerType, Signedness},
};

/// The types of a file.
pub(super) struct Types {
    /// The types by index; a name that is no type in MLIR is in quotes.
    all: Vec<Type>,
    /// Names that are not types.
    pub(super) unknown: Vec<String>,
    has_signed: bool,
    /// The types that the compiler meets so far, in order.
    met: Vec<Type>,
    is_met: HashSet<Type>,
}

impl Types {
    pub(super) fn new(file: &BefFile) -> Types {
        let mut unknown = Vec::new();
        // Names may occur often; those that do lie at the same address.
        let mut known: HashMap<*const u8, Type> = HashMap::new();
        // The gate has seen to it that the number fits.
        let indexes = (0..file.n_types()).map(|index| TypeIndex(index as u32));
        let all = indexes.map(|index| {
            let name = file.type_name(index);
            let entry = known.entry(name.as_ptr());
            let ty = entry.or_insert_with(|| {
                parse_type(name).unwrap_or_else(|| {
                    unknown.push(name.to_owned());
                    Type::dialect(&format!("!bef.type<\"{}\">", name.escape_default()))
                })
            });
            ty.clone()
        });
        let all: Vec<Type> = all.collect();
        let of_32_bits = Type::Integer(IntegerType {
            width: 32,
            signedness: Signedness::Signed,
        });
        Types {
            has_signed: all.contains(&of_32_bits),
            all,
            unknown,
            met: Vec::new(),
            is_met: HashSet::new(),
        }
    }

    /// Returns whether there are signed integers of 32 bits among them.
    pub(super) fn has_signed(&self) -> bool {
        self.has_signed
    }

    pub(super) fn get(&self, index: TypeIndex) -> Type {
        self.all[index.index()].clone()
    }

    /// Notes that the compiler meets a type here.
    pub(super) fn meet(&mut self, ty: &Type) {
        if self.is_met.insert(ty.clone()) {
            self.met.push(ty.clone());
        }
    }

    /// Returns the number of types that were met.
    pub(super) fn n_met(&self) -> usize {
        self.met.len()
    }

    /// Forgets all types that were met but the first ones.
    pub(super) fn forget(&mut self, n_kept: usize) {
        for ty in self.met.drain(n_kept..) {
            self.is_met.remove(&ty);
        }
    }

    /// Returns the type that a number of a signless type probably had.
    pub(super) fn signedness(&self, ty: Type) -> Type {
        let Some(signed) = signed(&ty) else {
            return ty;
        };
        let next = self.all.get(self.met.len());
        if self.is_met.contains(&ty) || next == Some(&ty) {
            return ty;
        }
        match self.is_met.contains(&signed) || next == Some(&signed) {
            true => signed,
            false => ty,
        }
    }
}

/// Returns the signed form of a signless type.
pub(super) fn signed(ty: &Type) -> Option<Type> {
    match ty {
        Type::Integer(IntegerType {
            width,
            signedness: Signedness::Signless,
        }) => Some(Type::Integer(IntegerType {
            width: *width,
            signedness: Signedness::Signed,
        })),
        _ => None,
    }
}
