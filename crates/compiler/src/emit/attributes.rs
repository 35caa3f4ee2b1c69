//! Encodes attributes: their kinds and their bytes.
//!
//! | Attribute | Kind |
//! |---|---|
//! | integer of 1, 8, 16, 32 or 64 bits; float | scalar |
//! | string, shape, dense numbers | the same |
//! | type that tensors can have | type |
//! | array of scalars or types of one kind | array |
//! | array of anything else in this table | aggregate |
//! | symbol in a compiled module | symbol, with the module's text |
//! | other symbol, or array of symbols | no attribute: a function of the kernel |

use std::collections::HashMap;

use tfrt_bef::{
    AttributeType, AttributeWriter, BefWriter, DType,
    layout::{FILE_ALIGNMENT, MAX_ATTRIBUTE_DEPTH},
};
use tfrt_ir::{
    Attribute, Diagnostic, Diagnostics, Module, Name, OpId, PrintOptions, Type,
    attributes::{DenseAttribute, DenseElements, SymbolRef},
    op_spans, print_op,
    types::{FloatKind, IntegerType, Signedness},
};

use crate::{
    COMPILED, codes,
    emit::{Constant, Walk},
};

/// The alignment of elements that models use in place.
const WEIGHTS_ALIGNMENT: usize = 64;

/// The largest number of dimensions that fits the fields of the header.
const MAX_RANK: usize = 1024;

impl Walk<'_> {
    /// Checks an attribute of a kernel, and notes its types.
    pub(super) fn attribute(&mut self, op: OpId, name: &Name, value: &Attribute) {
        if let Attribute::Symbol(symbol) = value
            && self.symbols.module_of(symbol).is_none()
        {
            if !symbol.nested.is_empty() {
                return self.cannot_encode(op, name);
            }
            return self.references.push((op, symbol.root.clone()));
        }
        let mut noted = None;
        if !self.strip {
            noted = Some(self.names.insert(name));
            self.types_of(value);
        }
        if let Some(functions) = function_array(value) {
            for function in functions {
                match function.as_flat_symbol() {
                    Some(root) => self.references.push((op, root.clone())),
                    None => return self.cannot_encode(op, name),
                }
            }
            return;
        }
        match kind_of(value, 0) {
            Some(kind) => {
                let value = self.attributes.insert(value);
                if value as usize == self.attribute_types.len() {
                    self.attribute_types.push(kind);
                }
                self.constants.push(Constant { name: noted, value });
            }
            None => self.cannot_encode(op, name),
        }
    }

    fn cannot_encode(&mut self, op: OpId, name: &Name) {
        if !self.diagnostics.has_errors() {
            let part = op_spans::attribute(self.module, op, name);
            self.error_in(
                codes::NOT_ENCODABLE,
                op,
                part,
                format!("BEF files cannot encode the '{name}' attribute"),
            );
        }
    }

    /// Notes the types of the numbers in an attribute.
    fn types_of(&mut self, value: &Attribute) {
        match value {
            Attribute::Integer(integer) => {
                self.types.insert(&integer.ty);
            }
            Attribute::Float(float) => {
                self.types.insert(&Type::Float(float.kind));
            }
            Attribute::Array(elements) => {
                elements.iter().for_each(|element| self.types_of(element));
            }
            _ => {}
        }
    }

    /// Writes all attributes and returns their offsets.
    pub(super) fn write_attributes(
        &mut self,
        writer: &mut BefWriter,
    ) -> Result<Vec<u32>, TooLarge> {
        let mut offsets = Vec::with_capacity(self.attributes.entries.len());
        let has_weights = writer.model.is_some();
        for (attribute, kind) in self.attributes.entries.iter().zip(&self.attribute_types) {
            let mut encoder = Encoder {
                writer: &mut writer.attributes,
                symbols: &mut self.symbols,
            };
            let offset = match attribute {
                Attribute::Dense(dense) if has_weights => {
                    encoder.dense(dense, alignment_of_weights(dense))?
                }
                _ => encoder.encode(attribute, *kind)?,
            };
            if u32::try_from(writer.attributes.payload().len()).is_err() {
                return Err(TooLarge);
            }
            writer.attribute_types.push((offset, *kind));
            offsets.push(offset);
        }
        Ok(offsets)
    }
}

/// The error that attributes take more than 4 GiB, or more than there is memory.
pub(super) struct TooLarge;

impl From<TooLarge> for Diagnostics {
    fn from(_: TooLarge) -> Diagnostics {
        let message = "the attributes take more than 4 GiB, which BEF files cannot encode";
        Diagnostic::error(tfrt_ir::codes::TOO_LARGE, message).into()
    }
}

/// Returns the elements of an array that stands for functions, as its first element decides.
pub(super) fn function_array(value: &Attribute) -> Option<&[Attribute]> {
    let elements = value.as_array()?;
    elements.first()?.as_symbol().map(|_| elements)
}

/// Returns the kind of an attribute in the file, `depth` arrays deep; `None` for one that the format lacks.
fn kind_of(value: &Attribute, depth: usize) -> Option<AttributeType> {
    match value {
        Attribute::Integer(integer) => {
            integer_dtype(integer.ty.as_integer()?).map(AttributeType::Scalar)
        }
        Attribute::Float(float) => float_dtype(float.kind).map(AttributeType::Scalar),
        Attribute::String(_) => Some(AttributeType::Scalar(DType::String)),
        Attribute::Type(ty) => dtype(ty).map(|_| AttributeType::Type),
        Attribute::Array(elements) => array_kind(elements, depth),
        Attribute::Symbol(_) => (depth == 0).then_some(AttributeType::Symbol),
        Attribute::Dense(dense) => dense_dtype(dense).map(|_| AttributeType::Dense),
        Attribute::Shape(_) => Some(AttributeType::Shape),
        _ => None,
    }
}

/// Returns whether files can hold an attribute.
pub(crate) fn is_encodable(value: &Attribute) -> bool {
    kind_of(value, 0).is_some()
}

fn array_kind(elements: &[Attribute], depth: usize) -> Option<AttributeType> {
    let mut kinds = elements.iter().map(|element| kind_of(element, depth + 1));
    let Some(first) = kinds.next() else {
        return Some(AttributeType::EMPTY_ARRAY);
    };
    let first = first?;
    let mut all_same = true;
    for kind in kinds {
        all_same &= kind? == first;
    }
    match first {
        AttributeType::Scalar(dtype) if all_same && dtype != DType::String => {
            Some(AttributeType::Array(dtype))
        }
        AttributeType::Type if all_same => Some(AttributeType::TypeArray),
        _ => (depth < MAX_ATTRIBUTE_DEPTH).then_some(AttributeType::Aggregate),
    }
}

fn integer_dtype(ty: IntegerType) -> Option<DType> {
    match (ty.signedness, ty.width) {
        (Signedness::Unsigned, 8) => Some(DType::Ui8),
        (Signedness::Unsigned, 16) => Some(DType::Ui16),
        (Signedness::Unsigned, 32) => Some(DType::Ui32),
        (Signedness::Unsigned, 64) => Some(DType::Ui64),
        (Signedness::Unsigned, 2) => Some(DType::Ui2),
        (Signedness::Unsigned, 4) => Some(DType::Ui4),
        (Signedness::Unsigned, _) => None,
        (_, 2) => Some(DType::I2),
        (_, 4) => Some(DType::I4),
        (_, 1) => Some(DType::I1),
        (_, 8) => Some(DType::I8),
        (_, 16) => Some(DType::I16),
        (_, 32) => Some(DType::I32),
        (_, 64) => Some(DType::I64),
        _ => None,
    }
}

fn float_dtype(kind: FloatKind) -> Option<DType> {
    match kind {
        FloatKind::BF16 => Some(DType::Bf16),
        FloatKind::F16 => Some(DType::F16),
        FloatKind::F32 => Some(DType::F32),
        FloatKind::F64 => Some(DType::F64),
        // Small floats have one name in both.
        small => DType::from_mlir_name(small.name()),
    }
}

/// Returns the element type of a type attribute.
fn dtype(ty: &Type) -> Option<DType> {
    match ty {
        Type::Integer(integer) => integer_dtype(*integer),
        Type::Float(kind) => float_dtype(*kind),
        Type::Complex(element) => match **element {
            Type::Float(FloatKind::F32) => Some(DType::Complex64),
            Type::Float(FloatKind::F64) => Some(DType::Complex128),
            _ => None,
        },
        Type::Dialect(name) => DType::from_mlir_name(name).filter(|_| name.starts_with('!')),
        _ => None,
    }
}

fn dense_dtype(dense: &DenseAttribute) -> Option<DType> {
    let DenseElements::Bytes(_) = dense.elements else {
        return None;
    };
    let shape = dense.shape();
    let known = shape.iter().all(|extent| *extent >= 0) && shape.len() <= MAX_RANK;
    let dtype = dtype(dense.element_type())?;
    let len_bytes = dense
        .n_elements()?
        .checked_mul(dtype.size_bytes()? as u64)?;
    (known && u32::try_from(len_bytes).is_ok()).then_some(dtype)
}

/// Returns the alignment of elements in the file of a model, which uses them in place: that of a cache line, if they
/// fill one.
fn alignment_of_weights(dense: &DenseAttribute) -> usize {
    let len_bytes = dense.n_elements().unwrap_or(0);
    let len_bytes = len_bytes.saturating_mul(dense.element_size_bytes() as u64);
    match len_bytes >= WEIGHTS_ALIGNMENT as u64 {
        true => WEIGHTS_ALIGNMENT,
        false => FILE_ALIGNMENT,
    }
}

/// Returns the alignment that an attribute requires of the aggregate that holds it.
fn alignment_in_aggregate(value: &Attribute) -> usize {
    match value {
        Attribute::Integer(integer) => integer
            .ty
            .as_integer()
            .map_or(1, |ty| (ty.width / 8).max(1) as usize),
        Attribute::Float(float) => float.kind.width().div_ceil(8) as usize,
        Attribute::String(_) => size_of::<u32>(),
        Attribute::Shape(shape) if shape.0.is_some() => FILE_ALIGNMENT,
        Attribute::Dense(_) | Attribute::Array(_) => FILE_ALIGNMENT,
        _ => 1,
    }
}

/// An encoder of attributes.
struct Encoder<'w, 's, 'm> {
    writer: &'w mut AttributeWriter,
    symbols: &'s mut Symbols<'m>,
}

impl Encoder<'_, '_, '_> {
    /// Writes an attribute of this kind and returns its offset.
    fn encode(&mut self, value: &Attribute, kind: AttributeType) -> Result<u32, TooLarge> {
        match (value, kind) {
            (Attribute::String(string), _) => Ok(self.writer.string(&string.bytes)),
            (Attribute::Shape(shape), _) => Ok(self.writer.shape(shape.0.as_deref())),
            (Attribute::Dense(dense), _) => self.dense(dense, FILE_ALIGNMENT),
            (Attribute::Symbol(symbol), _) => Ok(self.symbol(symbol)),
            (Attribute::Array(elements), AttributeType::Aggregate) => self.aggregate(elements),
            (Attribute::Array(elements), AttributeType::Array(dtype)) => {
                Ok(self.array(elements, dtype.alignment_bytes().unwrap_or(1)))
            }
            (Attribute::Array(elements), _) => Ok(self.array(elements, 1)),
            (scalar, _) => Ok(self.writer.scalar(&scalar_bytes(scalar))),
        }
    }

    fn array(&mut self, elements: &[Attribute], alignment: usize) -> u32 {
        if elements.is_empty() {
            return self.writer.empty_array();
        }
        let bytes: Vec<u8> = elements.iter().flat_map(scalar_bytes).collect();
        self.writer.array(alignment, elements.len(), &bytes)
    }

    fn aggregate(&mut self, elements: &[Attribute]) -> Result<u32, TooLarge> {
        let alignment = elements
            .iter()
            .map(alignment_in_aggregate)
            .max()
            .unwrap_or(1);
        let Encoder { writer, symbols } = self;
        writer.aggregate(alignment, elements.len(), |writer, position| {
            let element = &elements[position];
            let kind = kind_of(element, 1).expect("the walk refused what has no kind");
            let offset = Encoder { writer, symbols }.encode(element, kind)?;
            Ok((kind, offset))
        })
    }

    fn dense(&mut self, dense: &DenseAttribute, alignment: usize) -> Result<u32, TooLarge> {
        let dtype = dense_dtype(dense).expect("the walk refused what has no kind");
        let shape = dense.shape();
        let writer = &mut self.writer;
        if !dense.splat {
            return Ok(writer.dense_at(alignment, dtype, &shape, dense.bytes()));
        }
        // What has a kind is below 4 GiB.
        let len_bytes = dense.n_elements().unwrap_or(0) as usize * dense.bytes().len();
        let mut elements = Vec::new();
        elements
            .try_reserve_exact(len_bytes)
            .map_err(|_| TooLarge)?;
        elements.extend(dense.bytes().iter().cycle().take(len_bytes));
        Ok(writer.dense_at(alignment, dtype, &shape, &elements))
    }

    fn symbol(&mut self, symbol: &SymbolRef) -> u32 {
        let id = self.symbols.next_id;
        self.symbols.next_id += 1;
        let nested: Vec<&str> = symbol.nested.iter().map(|name| name.as_str()).collect();
        let text = self.symbols.text_of(symbol);
        self.writer.symbol(id, &symbol.root, &nested, &text)
    }
}

/// Returns the bytes of a number or a type.
fn scalar_bytes(value: &Attribute) -> Vec<u8> {
    match value {
        Attribute::Integer(integer) => match integer.ty.as_integer() {
            Some(IntegerType { width: 1, .. }) => vec![u8::from(!integer.value.is_zero())],
            ty => integer
                .value
                .to_le_bytes(ty.map_or(8, |ty| ty.width.div_ceil(8) as usize)),
        },
        Attribute::Float(float) => {
            float.bits.to_le_bytes()[..float.kind.width().div_ceil(8) as usize].to_vec()
        }
        Attribute::Type(ty) => dtype(ty)
            .map(|dtype| vec![dtype.byte()])
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The targets of symbols.
pub(super) struct Symbols<'m> {
    module: &'m Module,
    /// Operations with a name in the outermost module.
    top: HashMap<&'m str, OpId>,
    /// The compiled module that defines each symbol met so far, if one does.
    modules: HashMap<SymbolRef, Option<OpId>>,
    /// The text of each compiled module met so far.
    texts: HashMap<OpId, String>,
    next_id: u64,
}

impl<'m> Symbols<'m> {
    pub(super) fn new(module: &'m Module) -> Symbols<'m> {
        Symbols {
            module,
            top: module.symbol_table(module.top()),
            modules: HashMap::new(),
            texts: HashMap::new(),
            next_id: 0,
        }
    }

    /// Returns the compiled module that defines a symbol.
    pub(super) fn module_of(&mut self, symbol: &SymbolRef) -> Option<OpId> {
        if let Some(known) = self.modules.get(symbol) {
            return *known;
        }
        let found = self.find(symbol);
        self.modules.insert(symbol.clone(), found);
        found
    }

    fn find(&self, symbol: &SymbolRef) -> Option<OpId> {
        let mut at = *self.top.get(symbol.root.as_str())?;
        for name in symbol.nested.iter() {
            at = self.module.lookup_symbol_in(at, name)?;
        }
        let around = self.module.nearest_symbol_table(at)?;
        self.module.op(around).attribute(COMPILED).map(|_| around)
    }

    fn text_of(&mut self, symbol: &SymbolRef) -> String {
        let Some(op) = self.module_of(symbol) else {
            return String::new();
        };
        let module = self.module;
        let options = PrintOptions {
            generic: true,
            ..PrintOptions::default()
        };
        self.texts
            .entry(op)
            .or_insert_with(|| print_op(module, op, options))
            .clone()
    }
}
