//! Types that operations and their regions state: these are checked before anything is replaced.
//!
//! Operands of an elementwise operation have the shape of its result. A region has the arguments that its operation gives it,
//! and returns what the operation takes: a loop its values, a reduction numbers, which may be wider ones than its operands.

use tfrt_ir::{BlockId, OpId, Type, ValueId};

use super::build::width;
use super::quantized::is_quantized;
use super::{Bound, Lowering, bits, elements};

/// A type that an argument or a result of a region is to have.
enum Wanted {
    /// This one, but for extents that one of them does not state.
    Like(Type),
    /// A number of this type, or of a wider one of its kind.
    Number(Type),
}

impl Lowering<'_> {
    /// Checks the types of an operation's operands and of its regions.
    pub(super) fn check_stated(&self, op: OpId) -> Result<(), String> {
        let data = self.module.op(op);
        let name = data.name().as_str();
        if data.operands().len() > 1 && is_elementwise(name) {
            self.check_shapes(op)?;
        }
        if data.regions().is_empty() {
            return Ok(());
        }
        let types = |values: &[ValueId]| -> Vec<Type> {
            let types = values.iter().map(|value| self.module.value_type(*value));
            types.cloned().collect()
        };
        let (operands, results) = (types(data.operands()), types(data.results()));
        let like = |all: &[Type]| all.iter().cloned().map(Wanted::Like).collect::<Vec<_>>();
        let truth = || vec![Wanted::Like(Type::tensor(Vec::new(), Type::I1))];
        match name {
            "stablehlo.while" => {
                self.check_region(op, 0, &like(&operands), &truth())?;
                self.check_region(op, 1, &like(&operands), &like(&operands))
            }
            "stablehlo.if" | "stablehlo.case" => {
                let chooser = match name {
                    "stablehlo.if" => Type::I1,
                    _ => Type::I32,
                };
                let chooser = Wanted::Like(Type::tensor(Vec::new(), chooser));
                if let Some(found) = operands.first() {
                    chooser.check("operand 0", found)?;
                }
                for index in 0..data.regions().len() {
                    self.check_region(op, index, &[], &like(&results))?;
                }
                Ok(())
            }
            "stablehlo.sort" => {
                let pairs = operands.iter().flat_map(|ty| [ty, ty]);
                self.check_region(op, 0, &numbers(pairs), &truth())
            }
            "stablehlo.map" => self.check_region(op, 0, &numbers(&operands), &numbers(&results)),
            "stablehlo.reduce" | "stablehlo.reduce_window" => {
                self.check_region(op, 0, &numbers(&operands), &numbers(&results))
            }
            "stablehlo.scatter" => {
                // Places stand between the tensors and what is put into them.
                let n = results.len();
                let both = operands.iter().take(n).chain(operands.iter().skip(n + 1));
                self.check_region(op, 0, &numbers(both), &numbers(&results))
            }
            "stablehlo.select_and_scatter" => {
                let pair = |of: usize| numbers(operands.iter().skip(of).take(1).cycle().take(2));
                self.check_region(op, 0, &pair(0), &truth())?;
                self.check_region(op, 1, &pair(0), &numbers(&results))
            }
            _ => Ok(()),
        }
    }

    /// Checks the operands of an elementwise operation: bounds and conditions may be numbers.
    fn check_shapes(&self, op: OpId) -> Result<(), String> {
        let data = self.module.op(op);
        let result = data.results().first();
        let Some(result) = result.map(|result| self.module.value_type(*result)) else {
            return Ok(());
        };
        let may_be_number = |index: usize| match data.name().as_str() {
            "stablehlo.clamp" => index != 1,
            "stablehlo.select" => index == 0,
            _ => false,
        };
        for (index, operand) in data.operands().iter().enumerate() {
            let ty = self.module.value_type(*operand);
            let (Some((own, _)), Some((shape, _))) = (ty.as_shaped(), result.as_shaped()) else {
                continue;
            };
            let is_number = own.is_empty() && may_be_number(index);
            if !is_number && !have_one_shape(&own, &shape) {
                return Err(format!(
                    "has an operand {index} of extents {own:?}, expected those of the result, {shape:?}"
                ));
            }
        }
        Ok(())
    }

    fn check_region(
        &self,
        op: OpId,
        index: usize,
        arguments: &[Wanted],
        results: &[Wanted],
    ) -> Result<(), String> {
        let block = self.body(op, index)?;
        let own = self.module.block(block).arguments();
        if own.len() != arguments.len() {
            let (found, expected) = (own.len(), arguments.len());
            return Err(format!(
                "has a region {index} of {found} arguments, expected {expected}"
            ));
        }
        for (at, (argument, wanted)) in own.iter().zip(arguments).enumerate() {
            let place = format!("argument {at} of region {index}");
            wanted.check(&place, self.module.value_type(*argument))?;
        }
        let last = self.last(block)?;
        let given = self.module.op(last).operands();
        if given.len() != results.len() {
            let (found, expected) = (given.len(), results.len());
            return Err(format!(
                "has a region {index} that returns {found} values, expected {expected}"
            ));
        }
        for (at, (value, wanted)) in given.iter().zip(results).enumerate() {
            let place = format!("value {at} that region {index} returns");
            wanted.check(&place, self.module.value_type(*value))?;
        }
        Ok(())
    }

    /// Returns the last operation of a block, which returns.
    pub(super) fn last(&self, block: BlockId) -> Result<OpId, String> {
        let last = self.module.block(block).last();
        let last = last.ok_or("has a body without operations")?;
        match self.module.op(last).name().as_str() {
            "stablehlo.return" | "func.return" | "tfrt.return" => Ok(last),
            other => Err(format!(
                "has a body that ends in '{other}', expected a return"
            )),
        }
    }

    /// Converts values to the types of the numbers that a body takes, where these are wider.
    pub(super) fn promoted(
        &mut self,
        body: BlockId,
        values: Vec<Bound>,
    ) -> Result<Vec<Bound>, String> {
        let arguments = self.module.block(body).arguments().to_vec();
        let mut all = Vec::with_capacity(values.len());
        for (value, argument) in values.into_iter().zip(arguments) {
            let element = self.states.element(&self.element(argument))?;
            all.push(match (value, &element) {
                (Bound::Tensor(x), element) => Bound::Tensor(self.cast(x, element)),
                (Bound::Complex(real, imaginary), Type::Complex(part)) => {
                    Bound::Complex(self.cast(real, part), self.cast(imaginary, part))
                }
                (other, _) => other,
            });
        }
        Ok(all)
    }
}

fn is_elementwise(name: &str) -> bool {
    let mut all = elements::OPERATIONS.iter().chain(bits::OPERATIONS);
    name != "stablehlo.bitcast_convert" && all.any(|(own, _)| *own == name)
}

/// Makes numbers of the elements of tensors.
fn numbers<'t>(types: impl IntoIterator<Item = &'t Type>) -> Vec<Wanted> {
    let number = |ty: &Type| match ty.as_shaped() {
        Some((_, element)) => Wanted::Number(element.clone()),
        None => Wanted::Like(ty.clone()),
    };
    types.into_iter().map(number).collect()
}

impl Wanted {
    fn check(&self, place: &str, found: &Type) -> Result<(), String> {
        let fits = match self {
            Wanted::Like(ty) => are_alike(ty, found),
            Wanted::Number(element) => found
                .as_shaped()
                .is_some_and(|(shape, own)| shape.is_empty() && is_promoted(element, own)),
        };
        if fits {
            return Ok(());
        }
        let expected = match self {
            Wanted::Like(ty) => ty.clone(),
            Wanted::Number(element) => Type::tensor(Vec::new(), element.clone()),
        };
        Err(format!("has '{found}' as {place}, expected '{expected}'"))
    }
}

/// Returns whether two types are one but for extents that one of them does not state.
fn are_alike(a: &Type, b: &Type) -> bool {
    match (a, b, a.as_shaped(), b.as_shaped()) {
        (_, _, Some((a, of_a)), Some((b, of_b))) => {
            have_one_shape(&a, &b) && (of_a == of_b || (is_quantized(of_a) && is_quantized(of_b)))
        }
        (Type::Tuple(a), Type::Tuple(b), ..) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| are_alike(a, b))
        }
        (a, b, ..) => a == b,
    }
}

fn have_one_shape(a: &[i64], b: &[i64]) -> bool {
    let fits = |(a, b): (&i64, &i64)| *a < 0 || *b < 0 || a == b;
    a.len() == b.len() && a.iter().zip(b).all(fits)
}

/// Returns whether a type is another one, or a wider one of its kind.
fn is_promoted(from: &Type, to: &Type) -> bool {
    match (from, to) {
        (Type::Float(_), Type::Float(_)) => from == to || width(from) < width(to),
        (Type::Integer(a), Type::Integer(b)) => {
            // Truth values are no numbers.
            let is_one_kind = a.signedness == b.signedness && (a.width == 1) == (b.width == 1);
            is_one_kind && a.width <= b.width
        }
        (Type::Complex(a), Type::Complex(b)) => is_promoted(a, b),
        _ => from == to || (is_quantized(from) && is_quantized(to)),
    }
}
