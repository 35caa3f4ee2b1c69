//! [`Signature`]: the inputs and outputs of a model, and the check of the inputs of a call.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, Error};
use tfrt_ir::similar;
use tfrt_tensor::{DType, Optional, Tensor, TensorMetadata};

use super::datum::Datum;
use super::outputs::OutputList;
use super::types::{Dim, ValueInfo, ValueType};

/// Names of inputs or outputs that a message has room for.
const MAX_LISTED: usize = 20;

/// The inputs and outputs of a model, prepared for checking.
pub(super) struct Signature {
    pub(super) inputs: Vec<ValueInfo>,
    pub(super) outputs: Arc<OutputList>,
    symbols: Vec<String>,
    /// The check of each input; `None` for an input that is no tensor.
    checks: Vec<Option<TensorCheck>>,
}

/// The expected type of an input tensor. Symbols are indexes of [`Signature::symbols`].
struct TensorCheck {
    element: Option<DType>,
    extents: Option<Vec<DimCheck>>,
}

enum DimCheck {
    Fixed(usize),
    Symbol(usize),
    Any,
}

/// The size of each symbol in one call, and the input that has set it.
type SymbolBindings = SmallVec<[Option<(usize, usize)>; 8]>;

impl Signature {
    pub(super) fn new(inputs: Vec<ValueInfo>, outputs: Vec<ValueInfo>) -> Signature {
        let mut symbols = Vec::new();
        let mut extent = |dim: &Dim| match dim {
            Dim::Fixed(extent) => DimCheck::Fixed(*extent),
            Dim::Unknown => DimCheck::Any,
            Dim::Symbol(name) => {
                let known = symbols.iter().position(|symbol| symbol == name);
                DimCheck::Symbol(known.unwrap_or_else(|| {
                    symbols.push(name.clone());
                    symbols.len() - 1
                }))
            }
        };
        let mut check = |input: &ValueInfo| match &input.kind {
            ValueType::Tensor(tensor) => Some(TensorCheck {
                element: tensor.element,
                extents: tensor
                    .dims
                    .as_ref()
                    .map(|dims| dims.iter().map(&mut extent).collect()),
            }),
            _ => None,
        };
        let checks = inputs.iter().map(&mut check).collect();
        Signature {
            inputs,
            outputs: Arc::new(OutputList::of_model(outputs)),
            symbols,
            checks,
        }
    }

    /// Checks the values of all inputs, and converts them to arguments of a function, with room for more.
    pub(super) fn bind(
        &self,
        given: InputValues,
        room: usize,
    ) -> Result<Vec<AnyAsyncValue>, Error> {
        let mut bound: SymbolBindings = SmallVec::from_elem(None, self.symbols.len());
        let mut arguments = Vec::with_capacity(given.len() + room);
        for (index, given) in given.into_iter().enumerate() {
            let value = match (given, &self.inputs[index].kind) {
                (Some(InputValue::Tensor(value)), _) => {
                    if let Some(tensor) = value.get::<Tensor>() {
                        self.check_tensor(index, tensor.metadata(), &mut bound)?;
                    }
                    value
                }
                (Some(InputValue::Other(datum)), _) => {
                    self.check(index, &datum, &mut bound)?;
                    datum.into_value()
                }
                (Some(InputValue::Later(value)), _) => {
                    let value = value.settled();
                    if let Some(tensor) = value.get::<Tensor>() {
                        self.check_tensor(index, tensor.metadata(), &mut bound)?;
                    }
                    value
                }
                (None, ValueType::Optional(_)) => Datum::Optional(Optional::Nothing).into_value(),
                (None | Some(InputValue::State), _) => return Err(self.missing(index)),
            };
            arguments.push(value);
        }
        Ok(arguments)
    }

    /// Checks a value of one input, apart from those of others, and converts it to an argument.
    pub(super) fn bind_one(&self, index: usize, value: InputValue) -> Result<AnyAsyncValue, Error> {
        let mut bound: SymbolBindings = SmallVec::from_elem(None, self.symbols.len());
        let value = match value {
            InputValue::Tensor(value) | InputValue::Later(value) => value.settled(),
            InputValue::Other(datum) => {
                self.check(index, &datum, &mut bound)?;
                return Ok(datum.into_value());
            }
            InputValue::State => return Err(self.missing(index)),
        };
        if let Some(tensor) = value.get::<Tensor>() {
            self.check_tensor(index, tensor.metadata(), &mut bound)?;
        }
        Ok(value)
    }

    fn check(&self, index: usize, datum: &Datum, bound: &mut SymbolBindings) -> Result<(), Error> {
        match (datum, &self.inputs[index].kind) {
            (Datum::Tensor(tensor), ValueType::Tensor(_)) => {
                self.check_tensor(index, tensor.metadata(), bound)
            }
            (Datum::Sequence(_), ValueType::Sequence(_)) => Ok(()),
            (Datum::Optional(_), ValueType::Optional(_)) => Ok(()),
            (Datum::Map(map), ValueType::Map(key, _)) if map.keys().metadata().dtype == *key => {
                Ok(())
            }
            _ => Err(self.misfit(index, &datum.kind(), None)),
        }
    }

    fn check_tensor(
        &self,
        index: usize,
        found: &TensorMetadata,
        bound: &mut SymbolBindings,
    ) -> Result<(), Error> {
        let misfit = |why: Option<String>| {
            let found = Datum::kind_of(found);
            self.misfit(index, &found, why)
        };
        let Some(check) = &self.checks[index] else {
            return Err(misfit(None));
        };
        if check.element.is_some_and(|element| element != found.dtype) {
            return Err(misfit(None));
        }
        let Some(extents) = &check.extents else {
            return Ok(());
        };
        if extents.len() != found.shape.rank() {
            return Err(misfit(None));
        }
        for (extent, found) in extents.iter().zip(found.shape.extents()) {
            match *extent {
                DimCheck::Any => {}
                DimCheck::Fixed(extent) if extent == found => {}
                DimCheck::Fixed(_) => return Err(misfit(None)),
                DimCheck::Symbol(symbol) => match bound[symbol] {
                    None => bound[symbol] = Some((found, index)),
                    Some((extent, _)) if extent == found => {}
                    Some((extent, by)) => {
                        let (name, by) = (&self.symbols[symbol], &self.inputs[by].name);
                        let found = format!("{name} is {found} here, but {extent} in input '{by}'");
                        return Err(misfit(Some(found)));
                    }
                },
            }
        }
        Ok(())
    }

    #[cold]
    fn misfit(&self, index: usize, found: &ValueType, why: Option<String>) -> Error {
        let ValueInfo { name, kind } = &self.inputs[index];
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        Error::invalid_argument(format!(
            "input '{name}' was expected to be {kind}, found {found}{why}"
        ))
    }

    #[cold]
    fn missing(&self, index: usize) -> Error {
        let input = &self.inputs[index];
        Error::invalid_argument(format!(
            "input '{}' is missing: the model takes {}",
            input.name, input.kind
        ))
    }
}

/// Returns the names of inputs or outputs, for a message: the first of very many.
#[cold]
pub(super) fn listed(values: &[ValueInfo]) -> String {
    let names = values.iter().take(MAX_LISTED);
    let names: Vec<&str> = names.map(|value| value.name.as_str()).collect();
    match values.len() - names.len() {
        _ if names.is_empty() => "none".to_owned(),
        0 => names.join(", "),
        n_more => format!("{} and {n_more} more", names.join(", ")),
    }
}

/// The value of an input in one call.
pub(super) enum InputValue {
    /// A tensor that is available.
    Tensor(AnyAsyncValue),
    /// Another value that is available.
    Other(Box<Datum>),
    Later(AnyAsyncValue),
    /// The place of what the session has kept, which callers don't give.
    State,
}

/// The values of all inputs in one call. Few models take more than two.
pub(super) type InputValues = SmallVec<[Option<InputValue>; 2]>;

/// The inputs of a model, to be filled for a call: see [`ModelInputs`](super::ModelInputs).
pub struct Slots<'m> {
    signature: &'m Signature,
    given: InputValues,
    n_ordered: usize,
}

impl<'m> Slots<'m> {
    pub(super) fn new(signature: &'m Signature) -> Slots<'m> {
        let mut given = InputValues::new();
        given.resize_with(signature.inputs.len(), || None);
        Slots {
            signature,
            given,
            n_ordered: 0,
        }
    }

    /// Returns the slots of a step of a session, which has the values of inputs that are state itself.
    pub(super) fn of_session(
        signature: &'m Signature,
        states: impl IntoIterator<Item = usize>,
    ) -> Slots<'m> {
        let mut slots = Slots::new(signature);
        for index in states {
            slots.given[index] = Some(InputValue::State);
        }
        slots
    }

    pub(super) fn finish(self) -> InputValues {
        self.given
    }

    /// Gives the next input, in the order of the model; those that are state of a session are passed over.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none.
    pub fn push(&mut self, value: impl super::ModelInput) -> Result<(), Error> {
        while let Some(Some(InputValue::State)) = self.given.get(self.n_ordered) {
            self.n_ordered += 1;
        }
        let index = self.n_ordered;
        self.n_ordered += 1;
        self.put(index, value)
    }

    /// Gives an input by its name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is none of this name, or if it was given before.
    pub fn set(&mut self, name: &str, value: impl super::ModelInput) -> Result<(), Error> {
        let mut inputs = self.signature.inputs.iter();
        let Some(index) = inputs.position(|input| input.name == name) else {
            return Err(self.unknown(name));
        };
        self.put(index, value)
    }

    fn put(&mut self, index: usize, value: impl super::ModelInput) -> Result<(), Error> {
        let is_given = |slot: &&Option<InputValue>| !matches!(slot, Some(InputValue::State));
        let n_inputs = self.given.iter().filter(is_given).count();
        match self.given.get_mut(index) {
            Some(slot @ None) => {
                *slot = Some(value.into_input().0);
                Ok(())
            }
            Some(Some(InputValue::State)) => {
                let name = &self.signature.inputs[index].name;
                let message = format!("input '{name}' is state, which the session gives itself");
                let note = "`Session::replace` puts another value in its place";
                Err(Error::invalid_argument(message).with_note(note))
            }
            Some(Some(_)) => {
                let name = &self.signature.inputs[index].name;
                let message = format!("input '{name}' is given twice");
                Err(Error::invalid_argument(message))
            }
            None => Err(Error::invalid_argument(format!(
                "more inputs are given than the {n_inputs} that the model takes"
            ))),
        }
    }

    #[cold]
    fn unknown(&self, name: &str) -> Error {
        let inputs = &self.signature.inputs;
        let known = listed(inputs);
        let error =
            Error::invalid_argument(format!("the model has no input '{name}': it takes {known}"));
        let names = inputs.iter().map(|input| input.name.as_str());
        match similar::nearest(name, names) {
            Some(nearest) => error.with_note(format!("there is an input '{nearest}'")),
            None => error,
        }
    }
}
