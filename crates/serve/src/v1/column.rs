//! Tensors from lists of lists: their extents are those of the lists, which must be equal.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use tfrt_tensor::{BF16, Bool, DType, Element, F16, Tensor, TensorMetadata, TensorShape};

use crate::datatype::shown;
use crate::refusal::Refusal;
use crate::servable::{Description, TensorInfo};
use crate::v2::data::{Scalar, dense};
use crate::v2::tensors::strings_of;

/// The most lists within lists.
const MAX_DEPTH: usize = 64;

/// Reads rows: each is an object with a value for each input, or the value of the only input.
pub(super) fn of_rows(
    description: &Description,
    json: &str,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    let mut columns = Columns::new(description)?;
    columns.read(json, |columns| Rows { columns })?;
    columns.finish()
}

/// Reads columns: an object with a tensor for each input, or the tensor of the only input.
pub(super) fn of_columns(
    description: &Description,
    json: &str,
) -> Result<Vec<(String, Tensor)>, Refusal> {
    let mut columns = Columns::new(description)?;
    columns.read(json, |columns| Row { columns, base: 0 })?;
    columns.finish()
}

/// The inputs of a request while they are read.
struct Columns(Vec<Column>);

/// One input while it is read.
struct Column {
    name: String,
    dtype: DType,
    elements: Box<dyn Elements>,
    /// The extents of lists by their depth, once the first of each has ended.
    extents: Vec<Option<usize>>,
    /// How deep elements lie, once there is one.
    rank: Option<usize>,
    is_given: bool,
}

impl Columns {
    fn new(description: &Description) -> Result<Columns, Refusal> {
        let columns = description.inputs.iter().map(Column::new);
        columns.collect::<Result<_, _>>().map(Columns)
    }

    fn read<'c, S>(
        &'c mut self,
        json: &str,
        seed: impl FnOnce(&'c mut Columns) -> S,
    ) -> Result<(), Refusal>
    where
        S: for<'de> DeserializeSeed<'de, Value = ()>,
    {
        let mut text = serde_json::Deserializer::from_str(json);
        seed(self).deserialize(&mut text).map_err(|error| {
            let error = error.to_string();
            Refusal::invalid(error.split(" at line ").next().unwrap_or_default())
        })
    }

    fn finish(self) -> Result<Vec<(String, Tensor)>, Refusal> {
        self.0
            .into_iter()
            .filter(|column| column.is_given)
            .map(Column::finish)
            .collect()
    }

    /// Returns the column of a name.
    fn of_name<E: serde::de::Error>(&mut self, name: &str) -> Result<&mut Column, E> {
        let known: Vec<String> = self
            .0
            .iter()
            .take(20)
            .map(|column| format!("'{}'", column.name))
            .collect();
        let found = self.0.iter_mut().find(|column| column.name == name);
        found.ok_or_else(|| {
            E::custom(format_args!(
                "unexpected input '{}': the model takes {}",
                name.escape_debug(),
                known.join(", ")
            ))
        })
    }
}

impl Column {
    fn new(info: &TensorInfo) -> Result<Column, Refusal> {
        let elements: Box<dyn Elements> = match info.dtype {
            DType::I1 => Box::new(Vec::<Bool>::new()),
            DType::Ui8 => Box::new(Vec::<u8>::new()),
            DType::Ui16 => Box::new(Vec::<u16>::new()),
            DType::Ui32 => Box::new(Vec::<u32>::new()),
            DType::Ui64 => Box::new(Vec::<u64>::new()),
            DType::I8 => Box::new(Vec::<i8>::new()),
            DType::I16 => Box::new(Vec::<i16>::new()),
            DType::I32 => Box::new(Vec::<i32>::new()),
            DType::I64 => Box::new(Vec::<i64>::new()),
            DType::F16 => Box::new(Vec::<F16>::new()),
            DType::Bf16 => Box::new(Vec::<BF16>::new()),
            DType::F32 => Box::new(Vec::<f32>::new()),
            DType::F64 => Box::new(Vec::<f64>::new()),
            DType::String => Box::new(Strings(Vec::new())),
            other => {
                return Err(Refusal::invalid(format!(
                    "input '{}': elements of {} have no form in JSON",
                    info.name,
                    shown(other)
                )));
            }
        };
        Ok(Column {
            name: info.name.clone(),
            dtype: info.dtype,
            elements,
            extents: Vec::new(),
            rank: None,
            is_given: false,
        })
    }

    /// Notes that a list at a depth has ended.
    fn end_list<E: serde::de::Error>(&mut self, depth: usize, found: usize) -> Result<(), E> {
        if self.extents.len() <= depth {
            self.extents.resize(depth + 1, None);
        }
        match self.extents[depth] {
            None => self.extents[depth] = Some(found),
            Some(extent) if extent == found => {}
            Some(extent) => {
                return Err(E::custom(format_args!(
                    "input '{}': lists of one depth have the same length, but at depth {depth} there are {extent} and {found}",
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// Notes that an element lies at a depth.
    fn place<E: serde::de::Error>(&mut self, depth: usize) -> Result<(), E> {
        match self.rank {
            None => self.rank = Some(depth),
            Some(rank) if rank == depth => {}
            Some(rank) => {
                return Err(E::custom(format_args!(
                    "input '{}': elements are as deep in lists as the others, but are {rank} and {depth} deep",
                    self.name
                )));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(String, Tensor), Refusal> {
        let rank = self.rank.unwrap_or(self.extents.len());
        if rank < self.extents.len() {
            return Err(Refusal::invalid(format!(
                "input '{}': there are elements beside lists",
                self.name
            )));
        }
        let extents: Vec<usize> = self
            .extents
            .iter()
            .map(|extent| extent.unwrap_or(0))
            .collect();
        let shape = TensorShape::new(&extents)?;
        let metadata = TensorMetadata::new(self.dtype, shape);
        Ok((self.name, self.elements.finish(metadata)?))
    }
}

/// The elements of one input, of whatever type.
trait Elements {
    fn expected(&self) -> &'static str;
    fn push_u64(&mut self, value: u64) -> bool;
    fn push_i64(&mut self, value: i64) -> bool;
    fn push_f64(&mut self, value: f64) -> bool;
    fn push_bool(&mut self, value: bool) -> bool;
    fn push_text(&mut self, text: &str) -> bool;
    fn push_bytes(&mut self, _: Vec<u8>) -> bool {
        false
    }
    fn finish(self: Box<Self>, metadata: TensorMetadata) -> Result<Tensor, Refusal>;
}

fn push<T>(elements: &mut Vec<T>, element: Option<T>) -> bool {
    let is_one = element.is_some();
    elements.extend(element);
    is_one
}

impl<T: Element + Scalar> Elements for Vec<T> {
    fn expected(&self) -> &'static str {
        T::EXPECTED
    }

    fn push_u64(&mut self, value: u64) -> bool {
        push(self, T::from_u64(value))
    }

    fn push_i64(&mut self, value: i64) -> bool {
        push(self, T::from_i64(value))
    }

    fn push_f64(&mut self, value: f64) -> bool {
        push(self, T::from_f64(value))
    }

    fn push_bool(&mut self, value: bool) -> bool {
        push(self, T::from_bool(value))
    }

    fn push_text(&mut self, text: &str) -> bool {
        push(self, T::from_text(text))
    }

    fn finish(self: Box<Self>, metadata: TensorMetadata) -> Result<Tensor, Refusal> {
        dense(metadata, *self)
    }
}

/// Strings, which may also be bytes in base 64.
struct Strings(Vec<Vec<u8>>);

impl Elements for Strings {
    fn expected(&self) -> &'static str {
        "a string"
    }

    fn push_u64(&mut self, _: u64) -> bool {
        false
    }

    fn push_i64(&mut self, _: i64) -> bool {
        false
    }

    fn push_f64(&mut self, _: f64) -> bool {
        false
    }

    fn push_bool(&mut self, _: bool) -> bool {
        false
    }

    fn push_text(&mut self, text: &str) -> bool {
        self.push_bytes(text.as_bytes().to_vec())
    }

    fn push_bytes(&mut self, bytes: Vec<u8>) -> bool {
        self.0.push(bytes);
        true
    }

    fn finish(self: Box<Self>, metadata: TensorMetadata) -> Result<Tensor, Refusal> {
        strings_of(metadata, self.0)
    }
}

/// Reads the list of rows.
struct Rows<'c> {
    columns: &'c mut Columns,
}

impl<'de> DeserializeSeed<'de> for Rows<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows in `instances`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut n_rows = 0;
        let columns = self.columns;
        while list
            .next_element_seed(Row {
                columns: &mut *columns,
                base: 1,
            })?
            .is_some()
        {
            n_rows += 1;
            for column in &mut columns.0 {
                // Once it is in one row it is in all.
                let has_all = match column.extents.first() {
                    Some(Some(n_given)) => *n_given == n_rows,
                    _ => n_rows == 0,
                };
                if column.is_given && !has_all {
                    let (index, name) = (n_rows - 1, &column.name);
                    return Err(A::Error::custom(format_args!(
                        "rows have the same inputs, but row {index} or one before it has no '{name}'"
                    )));
                }
            }
        }
        if n_rows == 0 {
            return Err(A::Error::custom("`instances` has no rows"));
        }
        Ok(())
    }
}

/// Reads an object with a value for each input, or the value of the only one. Values begin at depth `base`.
struct Row<'c> {
    columns: &'c mut Columns,
    base: usize,
}

impl Row<'_> {
    /// Returns the only input, for a value without a name.
    fn only<E: serde::de::Error>(&mut self) -> Result<Nested<'_>, E> {
        let base = self.base;
        match &mut self.columns.0[..] {
            [only] => Ok(only.begin(base)),
            several => Err(E::custom(format_args!(
                "expected an object with a value for each of {} inputs",
                several.len()
            ))),
        }
    }
}

impl Column {
    /// Begins a value of the input: of a row, its next.
    fn begin(&mut self, base: usize) -> Nested<'_> {
        self.is_given = true;
        if base == 1 {
            if self.extents.is_empty() {
                self.extents.push(Some(0));
            }
            if let Some(Some(n_rows)) = self.extents.first_mut() {
                *n_rows += 1;
            }
        }
        Nested {
            column: self,
            depth: base,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// `alone!(visit_u64 u64)` hands a value without a name to the only input.
macro_rules! alone {
    ($($visit:ident $type:ty;)*) => {$(
        fn $visit<E: serde::de::Error>(mut self, value: $type) -> Result<(), E> {
            self.only()?.$visit(value)
        }
    )*};
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a value for each input, or a list")
    }

    alone! { visit_u64 u64; visit_i64 i64; visit_f64 f64; visit_bool bool; visit_str &str; }

    fn visit_seq<A: SeqAccess<'de>>(mut self, list: A) -> Result<(), A::Error> {
        self.only()?.visit_seq(list)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let mut given: Vec<String> = Vec::new();
        while let Some(name) = members.next_key::<String>()? {
            // The only input may be bytes, which are an object, too.
            if name == "b64" && self.columns.0.iter().all(|column| column.name != "b64") {
                let text: String = members.next_value()?;
                let nested = self.only()?;
                nested.bytes(&text)?;
                continue;
            }
            if given.contains(&name) {
                return Err(A::Error::custom(format_args!(
                    "input '{name}' is given twice"
                )));
            }
            let base = self.base;
            let column = self.columns.of_name(&name)?;
            members.next_value_seed(column.begin(base))?;
            given.push(name);
        }
        Ok(())
    }
}

/// Reads an element, or a list at a depth.
struct Nested<'c> {
    column: &'c mut Column,
    depth: usize,
}

impl Nested<'_> {
    fn element<E: serde::de::Error>(
        self,
        push: impl FnOnce(&mut dyn Elements) -> bool,
        found: impl FnOnce() -> String,
    ) -> Result<(), E> {
        self.column.place(self.depth)?;
        match push(&mut *self.column.elements) {
            true => Ok(()),
            false => Err(E::custom(format_args!(
                "input '{}': expected {}, found {}",
                self.column.name,
                self.column.elements.expected(),
                found()
            ))),
        }
    }

    fn bytes<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let bytes = STANDARD.decode(text).map_err(|error| {
            E::custom(format_args!(
                "input '{}': `b64` is no base 64: {error}",
                self.column.name
            ))
        })?;
        self.element(|elements| elements.push_bytes(bytes), || "bytes".to_owned())
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an element, or a list of elements")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.element(|elements| elements.push_u64(value), || value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.element(|elements| elements.push_i64(value), || value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.element(|elements| elements.push_f64(value), || value.to_string())
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.element(|elements| elements.push_bool(value), || value.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.element(
            |elements| elements.push_text(text),
            || "a string".to_owned(),
        )
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Nested { column, depth } = self;
        if depth == MAX_DEPTH {
            return Err(A::Error::custom("lists are too deep"));
        }
        let mut found = 0;
        let inner = depth + 1;
        while list
            .next_element_seed(Nested {
                column: &mut *column,
                depth: inner,
            })?
            .is_some()
        {
            found += 1;
        }
        column.end_list(depth, found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let name: Option<String> = members.next_key()?;
        if name.as_deref() != Some("b64") {
            return Err(A::Error::custom(format_args!(
                "input '{}': expected an element, found an object without `b64`",
                self.column.name
            )));
        }
        let text: String = members.next_value()?;
        if members.next_key::<String>()?.is_some() {
            return Err(A::Error::custom("expected nothing beside `b64`"));
        }
        self.bytes(&text)
    }
}
