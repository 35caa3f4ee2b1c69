//! Operands of a row: made of a call's handles, some of which are attributes of the row, and of its attributes, some
//! of which are operands.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{DType, Error, HostAllocator};
use tfrt_ops::names::{AttrForm, NameAttr, NameOperand};
use tfrt_ops::{Dim, Fact, MOST_VALUES};
use tfrt_tensor::op::Operands;
use tfrt_tensor::{
    DenseHostTensor, ObjectTensor, StringHostTensor, Tensor, TensorMetadata, TensorShape,
    with_element,
};

use super::Row;
use super::attributes::OperandLists;
use crate::attributes::{AttrValue, Numbers, OpAttrsRef};
use crate::inputs::Inputs;

/// The source of a row's operand.
pub(super) enum OperandSource {
    /// An input of the call.
    Input(usize),
    /// A tensor made by this rule.
    Made(NameOperand),
    /// Nothing: the operand is left out.
    Nowhere,
}

impl Row {
    /// Returns the number of operands that a call with `n_inputs` inputs gives the row.
    pub(super) fn n_operands(self, n_inputs: usize) -> usize {
        match self.name {
            None => n_inputs,
            Some(name) => match name.operands {
                Some(operands) => operands.len(),
                None => {
                    n_inputs
                        - (0..n_inputs)
                            .filter(|index| name.is_attr(*index, n_inputs))
                            .count()
                }
            },
        }
    }

    /// Returns where an operand of the row comes from.
    pub(super) fn source(self, index: usize, n_inputs: usize) -> OperandSource {
        let input = |index: usize| match index < n_inputs {
            true => OperandSource::Input(index),
            false => OperandSource::Nowhere,
        };
        let Some(name) = self.name else {
            return input(index);
        };
        match name.operands {
            None if name.attrs.is_empty() => input(index),
            None => {
                let mut own = (0..n_inputs).filter(|own| !name.is_attr(*own, n_inputs));
                own.nth(index)
                    .map_or(OperandSource::Nowhere, OperandSource::Input)
            }
            Some(operands) => match operands.get(index) {
                Some(NameOperand::At(index)) => input(*index),
                Some(made) => OperandSource::Made(*made),
                None => OperandSource::Nowhere,
            },
        }
    }

    /// Returns the integers of inputs that are attributes of the row, if all are there.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one is no tensor of integers.
    pub(super) fn lists(
        self,
        op: &str,
        inputs: &Inputs<'_>,
    ) -> Result<Option<OperandLists>, Error> {
        let mut lists = OperandLists::new();
        for attr in self.names() {
            let (NameAttr::Operand(name, index) | NameAttr::OperandOr(name, index, _)) = attr
            else {
                continue;
            };
            let index = match *index {
                tfrt_ops::names::LAST => inputs.len().saturating_sub(1),
                index => index,
            };
            if index >= inputs.len() {
                continue;
            }
            let handle = inputs.get(index);
            if let Some(metadata) = handle.metadata() {
                expect_integers(op, index, metadata)?;
                let is_list = self
                    .op
                    .attr(name)
                    .is_some_and(|attr| attr.kind == tfrt_ops::AttrKind::Ints);
                if !is_list && metadata.shape.n_elements() != Some(1) {
                    let shape = &metadata.shape;
                    return Err(Error::invalid_argument(format!(
                        "{op}: operand {index}: expected {name} in a tensor of one element, found {shape}"
                    )));
                }
                if is_list && metadata.shape.rank() != 1 {
                    let shape = &metadata.shape;
                    return Err(Error::invalid_argument(format!(
                        "{op}: operand {index}: expected {name} in a vector, found {shape}"
                    )));
                }
            }
            let Some(Ok(tensor)) = handle.tensor() else {
                return Ok(None);
            };
            match integers(tensor) {
                Some(list) => lists.push((*name, list)),
                None => return Ok(None),
            }
        }
        Ok(Some(lists))
    }

    /// Returns what is known of an operand of the row.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if what it is made of is wrong.
    pub(super) fn fact(
        self,
        op: &str,
        (inputs, metadata): (&Inputs<'_>, &[&TensorMetadata]),
        attrs: OpAttrsRef<'_>,
        index: usize,
    ) -> Result<Option<Fact>, Error> {
        let of_list = |list: SmallVec<[i64; 8]>| Fact {
            values: Some(list.iter().copied().map(Dim::Known).collect()),
            ..Fact::new(
                Some(DType::I64),
                Some([Dim::from(list.len())].into_iter().collect()),
            )
        };
        Ok(match self.source(index, inputs.len()) {
            OperandSource::Nowhere => None,
            OperandSource::Input(input) => {
                let tensor = inputs.get(input).tensor().and_then(Result::ok);
                metadata.get(input).map(|metadata| fact(metadata, tensor))
            }
            OperandSource::Made(NameOperand::Attr(name, held)) => match (held, attrs.value(name)) {
                (_, None) => None,
                (AttrForm::Shape, _) => attrs.shape(name)?.map(|shape| of_list(extents(&shape))),
                (AttrForm::Ints, _) => attrs
                    .integers(name)?
                    .filter(|list| !list.is_empty())
                    .map(of_list),
                (_, Some(AttrValue::Dense(tensor))) => Some(fact(tensor.metadata(), None)),
                (_, Some(value)) => Some(of_value(value)),
            },
            OperandSource::Made(made) => Some(match listed(op, made, inputs)? {
                Some(list) => of_list(list),
                None => Fact::UNKNOWN,
            }),
        })
    }

    /// Makes an operand of the row; nothing of one that is an input, or left out.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if what it is made of is wrong, `ResourceExhausted` if there is no memory for it.
    pub(super) fn made(
        self,
        op: &str,
        inputs: &Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        allocator: &Arc<dyn HostAllocator>,
        index: usize,
    ) -> Result<Option<Tensor>, Error> {
        let OperandSource::Made(made) = self.source(index, inputs.len()) else {
            return Ok(None);
        };
        let of_list = |list: &[i64]| DenseHostTensor::from_slice(allocator, &[list.len()], list);
        let NameOperand::Attr(name, held) = made else {
            let list = listed(op, made, inputs)?;
            return list.map(|list| Ok(of_list(&list)?.into())).transpose();
        };
        let made: Option<DenseHostTensor> = match (held, attrs.value(name)) {
            (_, None) => None,
            (AttrForm::Shape, _) => match attrs.shape(name)? {
                Some(shape) => Some(of_list(&extents(&shape))?),
                None => None,
            },
            (AttrForm::Ints, _) => match attrs.integers(name)? {
                Some(list) if !list.is_empty() => Some(of_list(&list)?),
                _ => None,
            },
            (_, Some(AttrValue::Dense(tensor))) => Some(tensor.clone()),
            (_, Some(AttrValue::Scalar(numbers))) => Some(dense(allocator, &[], numbers)?),
            (_, Some(AttrValue::List(numbers))) => {
                Some(dense(allocator, &[numbers.len()], numbers)?)
            }
            (_, Some(AttrValue::Text(text))) => {
                let strings = vec![text.as_str().as_bytes().to_vec()];
                return Ok(Some(
                    StringHostTensor::new(TensorShape::SCALAR, strings)?.into(),
                ));
            }
            (_, Some(found)) => {
                return Err(Error::invalid_argument(format!(
                    "{op}: attribute '{name}': expected numbers, found {found}"
                )));
            }
        };
        Ok(made.map(Tensor::from))
    }
}

/// The operands of a row.
pub(super) struct RowOperands<'c, 'a> {
    pub row: Row,
    pub inputs: &'c mut Inputs<'a>,
    /// Operands made for the row, by index. Empty if none is made.
    pub made: SmallVec<[Option<Tensor>; 2]>,
}

impl Operands for RowOperands<'_, '_> {
    fn len(&self) -> usize {
        self.row.n_operands(self.inputs.len())
    }

    fn get(&self, index: usize) -> Option<&Tensor> {
        match self.row.source(index, self.inputs.len()) {
            OperandSource::Input(input) => self.inputs.get(input).tensor()?.ok(),
            OperandSource::Made(_) => self.made.get(index)?.as_ref(),
            OperandSource::Nowhere => None,
        }
    }

    fn take_sole(&mut self, index: usize) -> Option<DenseHostTensor> {
        match self.row.source(index, self.inputs.len()) {
            OperandSource::Input(input) => self.inputs.take_sole(input),
            _ => None,
        }
    }

    fn take_object(&mut self, index: usize) -> Option<ObjectTensor> {
        match self.row.source(index, self.inputs.len()) {
            OperandSource::Input(input) => self.inputs.take_object(input),
            _ => None,
        }
    }

    fn put_back(&mut self, index: usize, tensor: DenseHostTensor) {
        if let OperandSource::Input(input) = self.row.source(index, self.inputs.len()) {
            self.inputs.put_back(input, tensor);
        }
    }
}

/// Returns the integers that an operand is made of other ones', if these are there.
fn listed(
    op: &str,
    made: NameOperand,
    inputs: &Inputs<'_>,
) -> Result<Option<SmallVec<[i64; 8]>>, Error> {
    let list = |index: usize| {
        if index >= inputs.len() {
            return Ok(None);
        }
        if let Some(metadata) = inputs.get(index).metadata() {
            expect_integers(op, index, metadata)?;
        }
        let tensor = inputs.get(index).tensor().and_then(Result::ok);
        Ok::<_, Error>(tensor.and_then(integers))
    };
    let shape = |index: usize| Some(inputs.get(index).metadata()?.shape.to_dims());
    match made {
        NameOperand::Pairs(index) => {
            let rank = inputs.get(0).metadata().map(|x| x.shape.rank());
            if let (Some(rank), Some(found)) = (rank, shape(index))
                && found[..] != [rank, 2]
            {
                return Err(Error::invalid_argument(format!(
                    "{op}: operand {index}: expected integers of shape [{rank}, 2], a row for each dimension, found \
                     {found:?}"
                )));
            }
            let Some(list) = list(index)? else {
                return Ok(None);
            };
            if list.iter().any(|size| *size < 0) {
                return Err(Error::invalid_argument(format!(
                    "{op}: operand {index}: expected no negative integers, found {:?}",
                    &list[..]
                )));
            }
            let (first, second) = (list.iter().step_by(2), list.iter().skip(1).step_by(2));
            Ok(Some(first.chain(second).copied().collect()))
        }
        NameOperand::Ends(starts_at, sizes_at) => {
            let (Some(extents), Some(starts), Some(sizes)) =
                (shape(0), list(starts_at)?, list(sizes_at)?)
            else {
                return Ok(None);
            };
            let rank = extents.len();
            if starts.len() != rank || sizes.len() != rank {
                let (starts, sizes) = (starts.len(), sizes.len());
                return Err(Error::invalid_argument(format!(
                    "{op}: expected a place and an extent for each of {rank} dimensions, found {starts} and {sizes}"
                )));
            }
            let all = starts.iter().zip(&sizes).zip(&extents).enumerate();
            let ends = all.map(|(index, ((start, size), extent))| {
                // An extent of a shape fits 63 bits.
                let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
                let end = match size {
                    -1 => Some(extent),
                    size => start.checked_add(*size),
                };
                let end = end.filter(|end| *start >= 0 && start <= end && *end <= extent);
                end.ok_or_else(|| {
                    Error::invalid_argument(format!(
                        "{op}: {size} elements from {start} on are not in dimension {index}, of extent {extent}"
                    ))
                })
            });
            ends.collect::<Result<_, _>>().map(Some)
        }
        NameOperand::At(_) | NameOperand::Attr(..) => Ok(None),
    }
}

fn expect_integers(op: &str, index: usize, metadata: &TensorMetadata) -> Result<(), Error> {
    match metadata.dtype {
        DType::I32 | DType::I64 => Ok(()),
        dtype => Err(Error::invalid_argument(format!(
            "{op}: operand {index}: expected integers of 32 or 64 bits, found {dtype}"
        ))),
    }
}

fn extents(shape: &TensorShape) -> SmallVec<[i64; 8]> {
    // An extent of a shape fits 63 bits.
    shape
        .extents()
        .map(|extent| i64::try_from(extent).unwrap_or(i64::MAX))
        .collect()
}

fn dense(
    allocator: &Arc<dyn HostAllocator>,
    extents: &[usize],
    numbers: &Numbers,
) -> Result<DenseHostTensor, Error> {
    let made = with_element!(numbers.dtype(), T => {
        numbers.as_slice::<T>().map(|list| DenseHostTensor::from_slice(allocator, extents, list))
    }, else None);
    made.unwrap_or_else(|| {
        Err(Error::invalid_argument(
            "expected numbers of a type that tensors have",
        ))
    })
}

/// Returns what is known of an attribute that is an operand: type and shape.
fn of_value(value: &AttrValue) -> Fact {
    let (dtype, dims) = match value {
        AttrValue::Scalar(numbers) => (numbers.dtype(), None),
        AttrValue::List(numbers) => (numbers.dtype(), Some(Dim::from(numbers.len()))),
        AttrValue::Text(_) => (DType::String, None),
        _ => return Fact::UNKNOWN,
    };
    Fact::new(Some(dtype), Some(dims.into_iter().collect()))
}

/// Returns what is known of an input.
fn fact(metadata: &TensorMetadata, tensor: Option<&Tensor>) -> Fact {
    let values = tensor.and_then(integers);
    let values = values.map(|values| values.into_iter().map(Dim::Known).collect());
    Fact {
        values,
        ..metadata.to_fact()
    }
}

/// Returns the elements of a small tensor of integers.
pub(super) fn integers(tensor: &Tensor) -> Option<SmallVec<[i64; 8]>> {
    let Tensor::Dense(dense) = tensor else {
        return None;
    };
    if !matches!(dense.dtype(), DType::I32 | DType::I64) || dense.n_elements() > MOST_VALUES {
        return None;
    }
    let reading = dense.read().ok()?;
    Some(match dense.dtype() {
        DType::I64 => SmallVec::from_slice(reading.elements::<i64>().ok()?),
        _ => reading
            .elements::<i32>()
            .ok()?
            .iter()
            .map(|one| i64::from(*one))
            .collect(),
    })
}
