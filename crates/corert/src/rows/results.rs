//! Types and shapes of a call's results before it runs: the row's rule infers them from facts about the operands.

use smallvec::SmallVec;
use tfrt_host::{DType, Error};
use tfrt_ops::names::AllowedAttr;
use tfrt_ops::{Arity, Attrs, Cost, Fact, Traits, Types, infer};
use tfrt_tensor::TensorMetadata;
use tfrt_tensor::math::Family;
use tfrt_tensor::op::unsupported;

use super::attributes::{CallAttrs, RowAttrs};
use super::{Row, SMALL};
use crate::attributes::OpAttrsRef;
use crate::definition::{MetadataCall, ResultMetadata};

impl Row {
    /// Returns what the results will be, if that follows. What runs it may say of which types operand 0 is.
    pub(super) fn metadata(
        self,
        call: &MetadataCall<'_>,
        family: Option<Family>,
    ) -> Result<ResultMetadata, Error> {
        let (op, n_inputs) = (call.op, call.inputs.len());
        if !call.attrs.is_empty() || self.asks {
            self.check_attributes(op, call.attrs, n_inputs)?;
        }
        let Some(lists) = self.lists(op, call.handles)? else {
            return Ok(ResultMetadata::new());
        };
        let mut inputs: SmallVec<[Option<Fact>; 3]> = SmallVec::new();
        for index in 0..self.n_operands(n_inputs) {
            inputs.push(self.fact(op, (call.handles, call.inputs), call.attrs, index)?);
        }
        while inputs.last().is_some_and(Option::is_none) {
            inputs.pop();
        }
        self.check_operands(op, &inputs)?;
        self.check_types(op, call)?;
        let dtype = inputs.first().and_then(|first| first.as_ref()?.dtype);
        if let (Some(family), Some(dtype)) = (family, dtype)
            && !family.has(dtype)
        {
            return Err(unsupported_of(op, dtype, |dtype| family.has(dtype)));
        }
        let source = RowAttrs {
            stated: CallAttrs(call.attrs),
            row: self,
            n_inputs,
            lists: &lists,
        };
        let attrs = Attrs::new(&source, self.op.attrs);
        let n_results = self.counted(call.attrs, n_inputs)?;
        let results = infer(self.op, &inputs, attrs, n_results, &mut |_, _| {
            std::default::Default::default()
        });
        let results = results.map_err(|error| self.named(op, &error))?;
        let known: Option<ResultMetadata> = results.iter().map(TensorMetadata::of_fact).collect();
        let mut known = known.unwrap_or_default();
        if let Some(dtype) = self.result_type(op, call.attrs)? {
            known.iter_mut().for_each(|result| result.dtype = dtype);
        }
        Ok(known)
    }

    /// Returns a rule's error, in the name of the operation that was called.
    fn named(self, op: &str, error: &tfrt_ops::InferError) -> Error {
        let text = error.to_string();
        let rest = text
            .strip_prefix(self.op.name)
            .filter(|rest| rest.starts_with([':', ' ']));
        Error::invalid_argument(match rest {
            Some(rest) => format!("{op}{rest}"),
            None => text,
        })
    }

    /// Checks that operands that share a type have one, and that operands of a named shape have its number of
    /// dimensions.
    fn check_operands(self, op: &str, inputs: &[Option<Fact>]) -> Result<(), Error> {
        let mut shared: SmallVec<[(&str, usize, DType); 3]> = SmallVec::new();
        // Of ONNX some take what follows in several types.
        let rest = self
            .op
            .inputs
            .last()
            .filter(|last| matches!(last.arity, Arity::Rest(_)) && self.op.dialect() != "onnx");
        for (index, fact) in inputs.iter().enumerate() {
            let Some(def) = self.op.inputs.get(index).or(rest) else {
                continue;
            };
            let Some((fact, dtype)) = fact.as_ref().and_then(|fact| Some((fact, fact.dtype?)))
            else {
                continue;
            };
            let rank = self.name.and_then(|name| {
                let mut ranks = name.ranks.iter();
                ranks.find(|(own, _)| *own == index).map(|(_, rank)| *rank)
            });
            if let (Some(wanted), Some(found)) = (rank, fact.rank())
                && wanted != found
            {
                let name = def.name;
                return Err(Error::invalid_argument(format!(
                    "{op}: operand {index} ({name}): expected {wanted} dimensions, found {found}"
                )));
            }
            match def.types {
                Types::Var(name) => {
                    let other = shared.iter().find(|(own, ..)| *own == name);
                    match other {
                        Some((_, first, other)) if *other != dtype => {
                            let [x, y] = [*first, index].map(|index| described(&inputs[index]));
                            return Err(Error::invalid_argument(format!(
                                "{op}: incompatible dtypes: {x} and {y}"
                            )));
                        }
                        Some(_) => (),
                        None => shared.push((name, index, dtype)),
                    }
                }
                Types::Set(types) if is_integers(types) && !is_integers(&[dtype]) => {
                    let name = def.name;
                    return Err(Error::invalid_argument(format!(
                        "{op}: operand {index} ({name}): expected integers of 32 or 64 bits, found {dtype}"
                    )));
                }
                // Of integers both widths are taken where one is named.
                Types::Set(types) if !is_integers(types) && !types.contains(&dtype) => {
                    return Err(unsupported_of(op, dtype, |dtype| types.contains(&dtype)));
                }
                _ => (),
            }
        }
        Ok(())
    }

    /// Checks that attributes which repeat the type of an operand's elements agree with it.
    fn check_types(self, op: &str, call: &MetadataCall<'_>) -> Result<(), Error> {
        let all = self.name.map_or(&[][..], |name| name.only);
        for (name, only) in all {
            let AllowedAttr::TypeOf(index) = only else {
                continue;
            };
            let own = call.inputs.get(*index).map(|metadata| metadata.dtype);
            if let (Some(own), Some(found)) = (own, call.attrs.dtype(name)?)
                && own != found
            {
                return Err(Error::invalid_argument(format!(
                    "{op}: expected attribute '{name}' to be {own}, the type of operand {index}, found {found}"
                )));
            }
        }
        Ok(())
    }

    /// Returns the type to which results are cast, if the name says so.
    pub(super) fn result_type(
        self,
        op: &str,
        attrs: OpAttrsRef<'_>,
    ) -> Result<Option<DType>, Error> {
        let Some((name, default)) = self.name.and_then(|name| name.result) else {
            return Ok(None);
        };
        match attrs.dtype(name)?.unwrap_or(default) {
            dtype @ (DType::I32 | DType::I64) => Ok(Some(dtype)),
            dtype => Err(Error::invalid_argument(format!(
                "{op}: attribute '{name}': expected i32 or i64, found {dtype}"
            ))),
        }
    }

    /// Returns about how many additions a call takes.
    pub(super) fn cost(self, inputs: &[&TensorMetadata], results: &[TensorMetadata]) -> u64 {
        let size =
            |metadata: &TensorMetadata| metadata.shape.n_elements().unwrap_or(usize::MAX) as u64;
        let each = match self.op.cost {
            _ if self.op.is(Traits::VIEW) => return 1,
            Cost::PerElement(0) => return 1,
            Cost::PerElement(each) => u64::from(each),
            Cost::Fn(cost) => {
                // Products and their like take no more than all pairs of elements.
                let largest = inputs.iter().map(|metadata| size(metadata));
                let largest = largest.chain(results.iter().map(size)).max().unwrap_or(0);
                if largest < SMALL {
                    return largest;
                }
                let inputs = inputs.iter().map(|input| Some(input.to_fact()));
                let inputs: SmallVec<[Option<Fact>; 3]> = inputs.collect();
                let results = results.iter().map(TensorMetadata::to_fact);
                let results: SmallVec<[Fact; 2]> = results.collect();
                // Eight products and sums are one instruction.
                return cost(&inputs, &results).map_or(u64::MAX, |cost| cost / 8);
            }
        };
        let inputs = inputs.iter().map(|metadata| size(metadata));
        let all = inputs.chain(results.iter().map(size));
        all.fold(0, u64::saturating_add).saturating_mul(each)
    }
}

/// Returns the error for a type of elements that an operation does not calculate with; it lists the types that it
/// does.
#[cold]
pub(super) fn unsupported_of(op: &str, dtype: DType, takes: impl Fn(DType) -> bool) -> Error {
    let all = DType::ALL.into_iter().filter(|dtype| takes(*dtype));
    let all: Vec<String> = all.map(|dtype| dtype.to_string()).collect();
    unsupported(op, dtype).with_note(format!("it takes {}", all.join(", ")))
}

fn is_integers(types: &[DType]) -> bool {
    types
        .iter()
        .all(|dtype| matches!(dtype, DType::I32 | DType::I64))
}

/// Returns type and extents as text.
fn described(fact: &Option<Fact>) -> String {
    match fact.as_ref().and_then(TensorMetadata::of_fact) {
        Some(metadata) => metadata.to_string(),
        None => fact
            .as_ref()
            .and_then(|fact| fact.dtype)
            .map_or_else(|| "nothing".to_owned(), |dtype| dtype.to_string()),
    }
}
