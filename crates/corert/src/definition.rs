//! [`OpDefinition`]: an operation as its author writes it: its arity, metadata function and code; [`OpRegistry`]:
//! operations by name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{Error, guarded};
pub use tfrt_tensor::op::{Formats, Output, Outputs};
use tfrt_tensor::{TensorFormat, TensorMetadata};

use crate::attributes::{self, OpAttrsRef, missing};
use crate::call::Call;
use crate::effects::EffectOrder;
use crate::inputs::Inputs;
use crate::rows::Function;

/// Types and shapes of results, known before the results are made.
pub type ResultMetadata = SmallVec<[TensorMetadata; 1]>;

/// Arguments of an operation's metadata function.
#[derive(Clone, Copy, Debug)]
pub struct MetadataCall<'a> {
    /// Name of the operation.
    pub op: &'a str,
    /// Types and shapes of the inputs.
    pub inputs: &'a [&'a TensorMetadata],
    /// Attributes of the call.
    pub attrs: OpAttrsRef<'a>,
    /// The input handles, which may be pending.
    pub(crate) handles: &'a Inputs<'a>,
}

impl MetadataCall<'_> {
    /// Returns the error for a missing attribute.
    pub fn missing(&self, name: &str) -> Error {
        attributes::missing(self.op, name)
    }
}

/// Function that finds types and shapes of the results. Called before the operation runs; returns fast.
pub type MetadataFn = dyn Fn(&MetadataCall<'_>) -> Result<ResultMetadata, Error> + Send + Sync;

/// Function that makes the results.
pub type DispatchFn = dyn Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync;

/// Function that estimates the cost of a call, in additions.
pub type CostFn = dyn Fn(&[&TensorMetadata], &[TensorMetadata]) -> u64 + Send + Sync;

/// Function that finds the number of results from attributes and the number of inputs.
pub type CountFn = dyn Fn(OpAttrsRef<'_>, usize) -> Result<usize, Error> + Send + Sync;

/// Function that says by a call's attributes whether it changes its resources beside such calls of other contexts.
pub type SharesFn = dyn Fn(OpAttrsRef<'_>) -> bool + Send + Sync;

/// The kind of an attribute, for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// A truth value.
    Bool,
    /// An integer of any width.
    Integer,
    /// A floating-point number.
    Float,
    /// A list of integers of any width.
    Integers,
    /// A number of any type.
    Number,
    /// A list of numbers of any type.
    Numbers,
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// A type of elements.
    Type,
    /// A list of types of elements.
    Types,
    /// A shape, or a list of extents.
    Shape,
    /// A list of shapes.
    Shapes,
    /// A dense tensor.
    Dense,
}

impl AttrKind {
    /// Returns the name of the kind in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            AttrKind::Bool => "truth value",
            AttrKind::Integer => "integer",
            AttrKind::Float => "float",
            AttrKind::Integers => "integers",
            AttrKind::Number => "number",
            AttrKind::Numbers => "numbers",
            AttrKind::Text => "text",
            AttrKind::Texts => "texts",
            AttrKind::Type => "type",
            AttrKind::Types => "types",
            AttrKind::Shape => "shape",
            AttrKind::Shapes => "shapes",
            AttrKind::Dense => "dense tensor",
        }
    }
}

/// Definition of an attribute that an operation takes.
#[derive(Clone, Debug)]
pub struct AttrDef {
    /// Name of the attribute.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: AttrKind,
    /// Sentence on its meaning, for documentation.
    pub summary: &'static str,
}

/// Rule for the number of an operation's results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultCount {
    /// This number.
    Always(usize),
    /// The value of the attribute of this name.
    Attribute(&'static str),
    /// The number of inputs.
    Inputs,
    /// The result of a function of the attributes and the number of inputs.
    Computed,
}

/// Maximum number of results that an attribute may ask for. More would be a mistake, which should not take memory.
const MAX_RESULTS: usize = 1 << 16;

/// Definition of an operation.
///
/// # Examples
///
/// ```
/// use tfrt_corert::{OpDefinition, same_metadata};
/// use tfrt_tensor::math::pointwise::UnaryFunction;
///
/// let sine = OpDefinition::new("my.sine", |call| call.unary(UnaryFunction::Sin))
///     .summary("The sine of each element.")
///     .inputs(1)
///     .metadata(same_metadata)
///     .pure();
/// assert_eq!(sine.name(), "my.sine");
/// ```
pub struct OpDefinition {
    name: Cow<'static, str>,
    summary: &'static str,
    n_inputs: RangeInclusive<usize>,
    n_results: ResultCount,
    formats: Formats,
    is_pure: bool,
    effect_order: EffectOrder,
    shares: Option<Box<SharesFn>>,
    attributes: Option<Vec<AttrDef>>,
    elements: &'static str,
    metadata: Option<Box<MetadataFn>>,
    dispatch: Box<DispatchFn>,
    cost: Option<Box<CostFn>>,
    count: Option<Box<CountFn>>,
    unread: &'static [&'static str],
    short_way: ShortWay,
    moves_inputs: bool,
    for_nodes: ForNodes,
}

/// The way of calls whose inputs are there, past what the others need.
#[derive(Clone, Copy)]
pub(crate) enum ShortWay {
    /// There is none.
    None,
    /// For dense inputs of few elements, without attributes.
    Pointwise(Function),
    /// The author's code, without the metadata function.
    Direct,
}

/// How nodes of programs keep an operation that they have found.
enum ForNodes {
    /// Not at all: it is found for each run.
    Never,
    /// As it is.
    Shared,
    /// Each node has a definition of its own.
    Own(Box<NodeFn>),
}

/// Function that makes the definition of an operation for a node.
type NodeFn = dyn Fn() -> Arc<OpDefinition> + Send + Sync;

impl OpDefinition {
    /// Begins the definition of an operation. By default it takes any number of dense tensors, gives one whose shape
    /// is known when it is there, takes any attributes, and has side effects.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        dispatch: impl Fn(&mut Call<'_>) -> Result<Outputs, Error> + Send + Sync + 'static,
    ) -> OpDefinition {
        OpDefinition {
            name: name.into(),
            summary: "",
            n_inputs: 0..=usize::MAX,
            n_results: ResultCount::Always(1),
            formats: Formats::DENSE,
            is_pure: false,
            effect_order: EffectOrder::OfContext,
            shares: None,
            attributes: None,
            elements: "",
            metadata: None,
            dispatch: Box::new(dispatch),
            cost: None,
            count: None,
            unread: &[],
            short_way: ShortWay::None,
            moves_inputs: false,
            for_nodes: ForNodes::Never,
        }
    }

    /// Sets the sentence that describes the operation.
    pub fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// Sets the types of its elements, for documentation.
    pub fn elements(mut self, elements: &'static str) -> Self {
        self.elements = elements;
        self
    }

    /// Sets the number of inputs.
    pub fn inputs(self, n: usize) -> Self {
        self.inputs_from(n..=n)
    }

    /// Sets the range of the number of inputs.
    pub fn inputs_from(mut self, range: RangeInclusive<usize>) -> Self {
        self.n_inputs = range;
        self
    }

    /// Sets the number of results.
    pub fn results(mut self, n: usize) -> Self {
        self.n_results = ResultCount::Always(n);
        self
    }

    /// Takes the number of results from a required attribute.
    pub fn results_by(mut self, attribute: &'static str) -> Self {
        self.n_results = ResultCount::Attribute(attribute);
        self
    }

    /// Gives as many results as there are inputs.
    pub fn results_as_inputs(mut self) -> Self {
        self.n_results = ResultCount::Inputs;
        self
    }

    /// Finds the number of results from the attributes and the number of inputs of a call.
    pub fn results_computed(
        mut self,
        count: impl Fn(OpAttrsRef<'_>, usize) -> Result<usize, Error> + Send + Sync + 'static,
    ) -> Self {
        self.n_results = ResultCount::Computed;
        self.count = Some(Box::new(count));
        self
    }

    /// Sets the formats of tensors that are not converted before a run.
    pub fn formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// Marks the operation as free of side effects.
    pub fn pure(mut self) -> Self {
        self.is_pure = true;
        self
    }

    /// Orders side effects by the resources among the inputs, which the operation only reads, or may change.
    pub fn effects_on_resources(mut self, writes: bool) -> Self {
        self.effect_order = EffectOrder::OfResources {
            writes,
            waits: false,
        };
        self
    }

    /// Orders side effects as [`effects_on_resources`](Self::effects_on_resources), for calls that wait in a place of
    /// their own in the resource, but among the calls of one context alone.
    pub fn waits_in_resources(mut self, writes: bool) -> Self {
        self.effect_order = EffectOrder::OfResources {
            writes,
            waits: true,
        };
        self
    }

    /// Says by its attributes which calls change their resources beside such calls of other contexts, as TensorFlow's
    /// optimizers do with `use_locking = false`. Default: none.
    pub fn resources_shared_by(
        mut self,
        shares: impl Fn(OpAttrsRef<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.shares = Some(Box::new(shares));
        self
    }

    /// Refuses attributes that neither this nor [`attribute`](Self::attribute) names.
    pub fn no_attributes(mut self) -> Self {
        self.attributes.get_or_insert_default();
        self
    }

    /// Declares an attribute. Undeclared ones are refused then, but for names that begin with `_`.
    pub fn attribute(mut self, name: &'static str, kind: AttrKind, summary: &'static str) -> Self {
        let attribute = AttrDef {
            name,
            kind,
            summary,
        };
        self.attributes.get_or_insert_default().push(attribute);
        self
    }

    /// Sets the metadata function, which finds types and shapes of the results before they are made: of all of them,
    /// or of none if they depend on values of inputs that are not there.
    pub fn metadata(
        mut self,
        metadata: impl Fn(&MetadataCall<'_>) -> Result<ResultMetadata, Error> + Send + Sync + 'static,
    ) -> Self {
        self.metadata = Some(Box::new(metadata));
        self
    }

    /// Sets the cost estimate, in additions. Default: one for each element of inputs and results.
    pub fn cost(
        mut self,
        cost: impl Fn(&[&TensorMetadata], &[TensorMetadata]) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.cost = Some(Box::new(cost));
        self
    }

    /// Accepts attributes of these names, too, and ignores them.
    pub(crate) fn unread(mut self, names: &'static [&'static str]) -> Self {
        self.unread = names;
        self
    }

    /// Sets a fast path for calls without attributes and side effects whose inputs are there and dense.
    pub(crate) fn fast_path(mut self, fast_path: Function) -> Self {
        self.short_way = ShortWay::Pointwise(fast_path);
        self
    }

    /// Says that the author's code finds types and shapes of results by itself: calls whose inputs are there run without the
    /// metadata function, and code that asks for [`Call::result`] is refused.
    pub fn direct(mut self) -> Self {
        self.short_way = ShortWay::Direct;
        self
    }

    /// Takes tensors of any format, on the operation's device or on the host: its code moves them.
    pub(crate) fn moves_inputs(mut self) -> Self {
        self.moves_inputs = true;
        self
    }

    /// Lets nodes of programs keep the operation, once found. Its code holds neither programs nor hosts.
    pub(crate) fn kept_by_nodes(mut self) -> Self {
        self.for_nodes = ForNodes::Shared;
        self
    }

    /// Makes a definition of its own for each node of a program that calls the operation: what that keeps belongs to the
    /// node, whose attributes are the same in each call. The node keeps the definition, which holds neither programs nor
    /// hosts.
    pub fn for_each_node(
        mut self,
        make: impl Fn() -> Arc<OpDefinition> + Send + Sync + 'static,
    ) -> Self {
        self.for_nodes = ForNodes::Own(Box::new(make));
        self
    }

    /// Returns the definition that a node of a program keeps, if it may keep one.
    pub(crate) fn for_node(self: &Arc<Self>) -> Option<Arc<OpDefinition>> {
        match &self.for_nodes {
            ForNodes::Never => None,
            ForNodes::Shared => Some(self.clone()),
            ForNodes::Own(make) => Some(make()),
        }
    }

    /// Returns the operation's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sentence that describes the operation.
    pub fn description(&self) -> &'static str {
        self.summary
    }

    /// Returns the types of its elements, for documentation.
    pub fn element_types(&self) -> &'static str {
        self.elements
    }

    /// Returns the range of the number of inputs.
    pub fn input_range(&self) -> &RangeInclusive<usize> {
        &self.n_inputs
    }

    /// Returns the rule for the number of results.
    pub fn n_results(&self) -> ResultCount {
        self.n_results
    }

    /// Returns the number of results of a call with these attributes and `n_inputs` inputs.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the attribute that says it is missing, negative or too large; the errors of a function that
    /// says it.
    #[inline]
    pub(crate) fn n_results_with(
        &self,
        attrs: OpAttrsRef<'_>,
        n_inputs: usize,
    ) -> Result<usize, Error> {
        match self.n_results {
            ResultCount::Inputs => Ok(n_inputs),
            ResultCount::Always(n) => Ok(n),
            ResultCount::Attribute(name) => self.counted(name, attrs),
            ResultCount::Computed => self.computed(attrs, n_inputs),
        }
    }

    #[cold]
    fn computed(&self, attrs: OpAttrsRef<'_>, n_inputs: usize) -> Result<usize, Error> {
        match &self.count {
            Some(count) => guarded(|| count(attrs, n_inputs)).and_then(|result| result),
            None => Ok(0),
        }
    }

    #[cold]
    fn counted(&self, attribute: &str, attrs: OpAttrsRef<'_>) -> Result<usize, Error> {
        let op = self.name();
        let Some(found) = attrs.integer(attribute)? else {
            return Err(missing(op, attribute));
        };
        let n = usize::try_from(found).ok().filter(|n| *n <= MAX_RESULTS);
        n.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{op}: expected attribute '{attribute}' to be a number of results, 0 to {MAX_RESULTS}, found {found}"
            ))
        })
    }

    /// Returns the formats of tensors that are not converted before a run.
    pub fn input_formats(&self) -> Formats {
        self.formats
    }

    /// Returns whether tensors of a format are taken without conversion.
    #[inline]
    pub(crate) fn takes(&self, format: TensorFormat) -> bool {
        self.formats.takes(format) || self.moves_inputs
    }

    /// Returns whether tensors of any device are taken.
    pub(crate) fn takes_any_device(&self) -> bool {
        self.moves_inputs
    }

    /// Returns whether the operation has no side effects.
    pub fn is_pure(&self) -> bool {
        self.is_pure
    }

    /// Returns how side effects are ordered among those of other calls of a context.
    pub fn effect_order(&self) -> EffectOrder {
        self.effect_order
    }

    /// Returns whether a call with these attributes changes its resources beside such calls of other contexts.
    pub fn shares_resources(&self, attrs: OpAttrsRef<'_>) -> bool {
        self.shares.as_ref().is_some_and(|shares| shares(attrs))
    }

    /// Returns the declared attributes; `None` if any are taken.
    pub fn attributes(&self) -> Option<&[AttrDef]> {
        self.attributes.as_deref()
    }

    /// Returns whether types and shapes of the results are known before the results are there.
    pub fn has_metadata(&self) -> bool {
        self.metadata.is_some()
    }

    pub(crate) fn metadata_fn(&self) -> Option<&MetadataFn> {
        self.metadata.as_deref()
    }

    /// Returns the way of calls whose inputs are there.
    #[inline]
    pub(crate) fn short_way(&self) -> ShortWay {
        self.short_way
    }

    pub(crate) fn dispatch_fn(&self) -> &DispatchFn {
        &*self.dispatch
    }

    /// Returns the estimated cost of a call, in additions.
    ///
    /// # Errors
    ///
    /// `Internal` if the author's code panics.
    #[inline]
    pub(crate) fn cost_of(
        &self,
        inputs: &[&TensorMetadata],
        results: &[TensorMetadata],
    ) -> Result<u64, Error> {
        if let Some(cost) = &self.cost {
            return guarded(|| cost(inputs, results));
        }
        let size =
            |metadata: &TensorMetadata| metadata.shape.n_elements().unwrap_or(usize::MAX) as u64;
        let inputs = inputs.iter().map(|metadata| size(metadata));
        Ok(inputs
            .chain(results.iter().map(size))
            .fold(0, u64::saturating_add))
    }

    /// Checks the number of inputs.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not.
    #[inline]
    pub(crate) fn check_inputs(&self, found: usize) -> Result<(), Error> {
        if self.n_inputs.contains(&found) {
            return Ok(());
        }
        let (least, most) = (*self.n_inputs.start(), *self.n_inputs.end());
        let expected = match (least, most) {
            (least, usize::MAX) => format!("{least} or more inputs"),
            (1, 1) => "1 input".to_owned(),
            (least, most) if least == most => format!("{least} inputs"),
            (least, most) => format!("{least} to {most} inputs"),
        };
        let name = &self.name;
        Err(Error::invalid_argument(format!(
            "{name} expects {expected}, found {found}"
        )))
    }

    /// Checks that the operation knows all of these attributes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it does not.
    #[inline]
    pub(crate) fn check_attributes(&self, attrs: OpAttrsRef<'_>) -> Result<(), Error> {
        let Some(known) = &self.attributes else {
            return Ok(());
        };
        for (name, _) in attrs.iter() {
            let is_known = known.iter().any(|attribute| attribute.name == name);
            if !is_known && !name.starts_with('_') && !self.unread.contains(&name) {
                return Err(self.unknown_attribute(name, known));
            }
        }
        Ok(())
    }

    #[cold]
    fn unknown_attribute(&self, name: &str, known: &[AttrDef]) -> Error {
        let (op, name) = (&self.name, name.escape_debug());
        let names: Vec<&str> = known.iter().map(|attribute| attribute.name).collect();
        let expected = match &names[..] {
            [] => "it takes none".to_owned(),
            names => format!("expected {}", names.join(", ")),
        };
        Error::invalid_argument(format!("{op} has no attribute '{name}': {expected}"))
    }
}

impl fmt::Debug for OpDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpDefinition")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Returns the metadata of the first input: the metadata function of operations whose result is like it.
///
/// # Errors
///
/// `InvalidArgument` if there is no input.
pub fn same_metadata(call: &MetadataCall<'_>) -> Result<ResultMetadata, Error> {
    match call.inputs.first() {
        Some(first) => Ok(smallvec::smallvec![TensorMetadata::clone(first)]),
        None => Err(Error::invalid_argument(format!(
            "{} expects an input",
            call.op
        ))),
    }
}

/// A registry of operations by name.
#[derive(Clone, Debug, Default)]
pub struct OpRegistry {
    ops: BTreeMap<String, Arc<OpDefinition>>,
}

impl OpRegistry {
    /// Returns a registry without operations.
    pub fn new() -> OpRegistry {
        OpRegistry::default()
    }

    /// Adds an operation. One that has its name is replaced.
    pub fn add(&mut self, definition: OpDefinition) -> &mut Self {
        let name = definition.name().to_owned();
        self.ops.insert(name, Arc::new(definition));
        self
    }

    /// Finds an operation.
    pub fn get(&self, name: &str) -> Option<&Arc<OpDefinition>> {
        self.ops.get(name)
    }

    /// Returns all operations, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<OpDefinition>> {
        self.ops.values()
    }
}
