//! Text form of steps: a function's name, its operands, and its parameters.
//!
//! `a0` is the first input of the program, `s0` the result of its first step, anything else a number. `mul a0 2`,
//! `add s0 a1`, `leaky_relu s1 0.01`, `cast s2 f16` multiply by 2, add the second input, multiply what is below 0 by 0.01,
//! and round to `f16`.

use std::fmt;
use std::str::FromStr;

use tfrt_host::Error;

use super::formulas::{BinaryFunction, UnaryFunction};
use super::parametric::ParametricFunction;
use super::program::{Operand, PointwiseProgram, Step};
use crate::DType;

const SELECT: &str = "select";
const CAST: &str = "cast";

impl Step {
    /// Returns the name of the step's function.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Unary(function, _) => function.name(),
            Step::Parametric(function, _, _) => function.name(),
            Step::Binary(function, _) => function.name(),
            Step::Select(_) => SELECT,
            Step::Cast(..) => CAST,
        }
    }
}

impl PointwiseProgram {
    /// Reads a program of so many inputs, its steps parted by `; `.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a step that is none, and for operands that are not there.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_tensor::math::pointwise::PointwiseProgram;
    ///
    /// let program = PointwiseProgram::parse(2, "mul a0 2; add s0 a1; relu s1")?;
    /// assert_eq!(program.steps().len(), 3);
    /// # Ok::<(), tfrt_host::Error>(())
    /// ```
    pub fn parse(n_inputs: usize, text: &str) -> Result<PointwiseProgram, Error> {
        let steps = text.split("; ").map(str::parse);
        PointwiseProgram::new(n_inputs, &steps.collect::<Result<Vec<Step>, Error>>()?)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Input(index) => write!(f, "a{index}"),
            Operand::Step(index) => write!(f, "s{index}"),
            Operand::Number(number) => write!(f, "{number:e}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        for operand in self.operands() {
            write!(f, " {operand}")?;
        }
        match self {
            Step::Parametric(function, parameters, _) => {
                let mut stated = parameters.iter().take(function.n_parameters());
                stated.try_for_each(|parameter| write!(f, " {parameter:e}"))
            }
            Step::Cast(dtype, _) => write!(f, " {}", dtype.mlir_name()),
            _ => Ok(()),
        }
    }
}

impl FromStr for Step {
    type Err = Error;

    /// Reads a step.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no function of this name, if it takes more or fewer operands or parameters, or for
    /// words that are neither.
    fn from_str(text: &str) -> Result<Step, Error> {
        let mut words = text.split(' ');
        let name = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        let wrong = |expected: &str| {
            let (text, name) = (text.escape_debug(), name.escape_debug());
            let message = format!("the step '{text}': expected {expected} behind '{name}'");
            Error::invalid_argument(message)
        };
        if name == CAST {
            let found = match words[..] {
                [x, dtype] => operand(x).zip(DType::from_mlir_name(dtype)),
                _ => None,
            };
            let (x, dtype) = found.ok_or_else(|| wrong("an operand and a type"))?;
            return Ok(Step::Cast(dtype, x));
        }
        // One name may be that of a function with parameters, and of the same without.
        let parametric = ParametricFunction::from_name(name);
        if let Some(function) =
            parametric.filter(|function| words.len() == 1 + function.n_parameters())
        {
            let mut parameters = [0.0; 2];
            let stated = words[1..].iter().zip(&mut parameters);
            let are_read = stated.fold(true, |are_read, (word, parameter)| {
                let number = word.parse::<f64>().ok();
                *parameter = number.unwrap_or_default();
                are_read && number.is_some()
            });
            let x = operand(words[0]).filter(|_| are_read);
            let x = x.ok_or_else(|| wrong("an operand and numbers"))?;
            return Ok(Step::Parametric(function, parameters, x));
        }
        let operands = words.iter().map(|word| operand(word));
        let operands = operands.collect::<Option<Vec<Operand>>>();
        let operands = operands.ok_or_else(|| wrong("a0, s0 or a number"))?;
        let found = match operands[..] {
            [x] => UnaryFunction::from_name(name).map(|function| Step::Unary(function, x)),
            [x, y] => {
                BinaryFunction::from_name(name).map(|function| Step::Binary(function, [x, y]))
            }
            [condition, x, y] => (name == SELECT).then_some(Step::Select([condition, x, y])),
            _ => None,
        };
        found.ok_or_else(|| match parametric {
            Some(function) => wrong(&format!(
                "an operand, and numbers: {},",
                function.n_parameters()
            )),
            None if name == SELECT => wrong("3 operands"),
            None if UnaryFunction::from_name(name).is_some() => wrong("1 operand"),
            None if BinaryFunction::from_name(name).is_some() => wrong("2 operands"),
            None => {
                let text = text.escape_debug();
                Error::invalid_argument(format!(
                    "expected a function and its operands, found '{text}'"
                ))
            }
        })
    }
}

fn operand(word: &str) -> Option<Operand> {
    let index = |digits: &str| digits.parse::<usize>().ok();
    match (word.strip_prefix('a'), word.strip_prefix('s')) {
        (Some(digits), _) => index(digits).map(Operand::Input),
        (_, Some(digits)) => index(digits).map(Operand::Step),
        _ => word.parse::<f64>().ok().map(Operand::Number),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_function_has_a_name_of_its_own_and_is_read_again() {
        let (x, y) = (Operand::Input(3), Operand::Step(12));
        let number = Operand::Number(-2.5);
        let unary = UnaryFunction::ALL
            .iter()
            .map(|function| Step::Unary(*function, x));
        let binary = BinaryFunction::ALL
            .iter()
            .map(|function| Step::Binary(*function, [y, number]));
        let parametric = ParametricFunction::ALL.iter().map(|function| {
            let mut parameters = [0.1, 1e300];
            parameters[function.n_parameters()..].fill(0.0);
            Step::Parametric(*function, parameters, y)
        });
        let others = [Step::Select([x, y, number]), Step::Cast(DType::Bf16, y)];
        let all: Vec<Step> = unary
            .chain(binary)
            .chain(parametric)
            .chain(others)
            .collect();
        for step in &all {
            assert_eq!(step.to_string().parse::<Step>().unwrap(), *step);
        }
        let shapes = all
            .iter()
            .map(|step| (step.name(), step.to_string().split(' ').count()));
        assert_eq!(shapes.collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn what_is_no_step_is_told() {
        let told = |text: &str| text.parse::<Step>().unwrap_err().message().to_owned();
        assert_eq!(
            told("Multiply a0 2.0"),
            "expected a function and its operands, found 'Multiply a0 2.0'"
        );
        assert_eq!(
            told("add a0"),
            "the step 'add a0': expected 2 operands behind 'add'"
        );
        assert_eq!(
            told("exp a0 a1"),
            "the step 'exp a0 a1': expected 1 operand behind 'exp'"
        );
        assert_eq!(
            told("leaky_relu a0"),
            "the step 'leaky_relu a0': expected an operand, and numbers: 1, behind 'leaky_relu'"
        );
        assert_eq!(
            told("leaky_relu a0 s0"),
            "the step 'leaky_relu a0 s0': expected an operand and numbers behind 'leaky_relu'"
        );
        assert_eq!(
            told("cast a0 f17"),
            "the step 'cast a0 f17': expected an operand and a type behind 'cast'"
        );
        assert_eq!(
            told("add a0 b1"),
            "the step 'add a0 b1': expected a0, s0 or a number behind 'add'"
        );
        for text in [
            "",
            "select a0 a1",
            "add  a0",
            "mish",
            "mish a0 1",
            "elu a0 1 2",
            "a0",
            "add a-1 2",
        ] {
            assert!(text.parse::<Step>().is_err(), "{text}");
        }
    }
}
