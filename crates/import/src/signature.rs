//! [`Signature`]: the names and extents of a model's inputs and outputs, as attributes of `@main`.

use tfrt_ir::{Attribute, Location, Module, OpId, OpState, RegionId, Type};

/// The names of a model's inputs and outputs, with their extents, in order.
///
/// # Examples
///
/// ```
/// use tfrt_import::{Dim, Signature};
/// use tfrt_ir::{Location, Module, OpState, Type};
///
/// let mut module = Module::new();
/// let region = module.create_region();
/// let block = module.create_block(region);
/// let x = module.add_argument(block, Type::tensor(vec![-1, 3], Type::F32), Location::Unknown);
/// let last = module.create(OpState::new("tfrt.return").operand(x));
/// module.append(block, last);
///
/// let extents = [Dim::Named("N"), Dim::Known(3)];
/// let mut signature = Signature::default();
/// signature.input("x", Some(&extents)).output("y", Some(&extents));
/// signature.function(&mut module, region, Location::Unknown);
/// assert!(module.to_string().contains("@main(%arg0: tensor<?x3xf32>) -> tensor<?x3xf32>"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Signature {
    inputs: Vec<Attribute>,
    input_dims: Vec<Attribute>,
    outputs: Vec<Attribute>,
    output_dims: Vec<Attribute>,
}

/// The extent of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim<'a> {
    /// A number.
    Known(i64),
    /// A symbol, which is the same number wherever it stands in a call.
    Named(&'a str),
    /// An unknown number.
    Unknown,
}

impl Dim<'_> {
    /// Returns the size in a type.
    pub(crate) fn size(&self) -> i64 {
        match self {
            Dim::Known(size) => *size,
            Dim::Named(_) | Dim::Unknown => tfrt_ir::types::DYNAMIC,
        }
    }
}

impl Signature {
    /// Adds an input, with its extents if its rank is known.
    pub fn input(&mut self, name: &str, extents: Option<&[Dim<'_>]>) -> &mut Signature {
        self.add_input(name, dims(extents));
        self
    }

    /// Adds an output, with its extents if its rank is known.
    pub fn output(&mut self, name: &str, extents: Option<&[Dim<'_>]>) -> &mut Signature {
        self.add_output(name, dims(extents));
        self
    }

    /// Adds an input, with its extents as an attribute.
    pub(crate) fn add_input(&mut self, name: &str, dims: Attribute) {
        self.inputs.push(Attribute::string(name));
        self.input_dims.push(dims);
    }

    /// Adds an output, with its extents as an attribute.
    pub(crate) fn add_output(&mut self, name: &str, dims: Attribute) {
        self.outputs.push(Attribute::string(name));
        self.output_dims.push(dims);
    }

    /// Adds the function `@main` to the module. Its region has a block, whose arguments are the inputs, and whose
    /// last operation returns the outputs.
    pub fn function(self, module: &mut Module, region: RegionId, location: Location) -> OpId {
        let (mut inputs, mut results) = (Vec::new(), Vec::new());
        if let Some(block) = module.entry_block(region) {
            let types = |values: &[tfrt_ir::ValueId]| {
                let types = values.iter().map(|&value| module.value_type(value));
                types.cloned().collect()
            };
            inputs = types(module.block(block).arguments());
            let last = module.block(block).last();
            results = last.map_or_else(Vec::new, |last| types(module.op(last).operands()));
        }
        let ty = Attribute::Type(Type::function(inputs, results));
        let main = OpState::new("func.func")
            .attribute("sym_name", Attribute::string("main"))
            .attribute("function_type", ty)
            .attribute("model.input_names", Attribute::array(self.inputs))
            .attribute("model.input_dims", Attribute::array(self.input_dims))
            .attribute("model.output_names", Attribute::array(self.outputs))
            .attribute("model.output_dims", Attribute::array(self.output_dims))
            .region(region)
            .location(location);
        let main = module.create(main);
        module.append(module.body(), main);
        main
    }
}

/// Makes an attribute of extents.
fn dims(extents: Option<&[Dim<'_>]>) -> Attribute {
    let one = |extent: &Dim<'_>| match *extent {
        Dim::Known(size) => Attribute::integer(size, Type::I64),
        Dim::Named(name) => Attribute::string(name),
        Dim::Unknown => Attribute::string(""),
    };
    match extents {
        Some(extents) => Attribute::array(extents.iter().map(one).collect()),
        None => Attribute::Unit,
    }
}
