//! [`Function`]: the code of pointwise functions, as NVRTC has compiled it (`kernels/functions.ptx`).

use std::collections::HashMap;
use std::sync::LazyLock;

/// The text of all functions.
pub(super) const TEXT: &str = include_str!("../../kernels/functions.ptx");

static ALL: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| parse(TEXT));

/// A function of numbers in registers.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    /// The lines that declare its registers, which are named for it.
    pub(super) registers: Vec<String>,
    /// The names of its parameters.
    parameters: Vec<&'static str>,
    lines: Vec<&'static str>,
}

/// Returns the function of a step's name.
pub(super) fn function(name: &str) -> Option<&'static Function> {
    ALL.get(name)
}

/// Reads functions: each `f_NAME`, a statement a line.
fn parse(text: &'static str) -> HashMap<&'static str, Function> {
    let mut all = HashMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((_, head)) = line.split_once(") f_") else {
            continue;
        };
        let mut function = Function {
            name: head.trim_end_matches('('),
            registers: Vec::new(),
            parameters: Vec::new(),
            lines: Vec::new(),
        };
        for line in lines.by_ref().take_while(|line| *line != "}") {
            if let Some(parameter) = line.strip_prefix(".param .b32 ") {
                function.parameters.push(parameter.trim_end_matches(','));
            } else if line.starts_with(".reg") {
                let own = own_registers(line, function.name);
                function.registers.push(own);
            } else if !["{", ")"].contains(&line) {
                function.lines.push(line);
            }
        }
        all.insert(function.name, function);
    }
    all
}

/// Names registers for the function that they belong to: `%f1` of `exp` is `%exp_f1`.
fn own_registers(line: &str, name: &str) -> String {
    line.replace('%', &format!("%{name}_"))
}

impl Function {
    /// Returns the number of numbers that it takes.
    pub(super) fn n_parameters(&self) -> usize {
        self.parameters.len()
    }

    /// Returns the lines that leave the function of arguments, registers or numbers, in the register `to`. Those behind its
    /// parameters are not taken. `number` is of this place alone, or the function has no labels.
    pub(super) fn code(&self, to: &str, arguments: &[String], number: usize) -> Vec<String> {
        let end = format!("$end_{}_{number}", self.name);
        let last = self.lines.len().saturating_sub(1);
        let mut has_end = false;
        let mut all = Vec::with_capacity(self.lines.len() + 1);
        for (at, line) in self.lines.iter().enumerate() {
            if let Some((ty, register, argument)) = self.argument(line, arguments) {
                let register = own_registers(register, self.name);
                all.push(format!("mov.{ty} {register}, {argument};"));
            } else if let Some((ty, result)) = result(line) {
                all.push(format!(
                    "mov.{ty} {to}, {}",
                    own_registers(result, self.name)
                ));
            } else if *line == "ret;" {
                if at != last {
                    has_end = true;
                    all.push(format!("bra.uni {end};"));
                }
            } else {
                all.push(own_labels(&own_registers(line, self.name), number));
            }
        }
        if has_end {
            all.push(format!("{end}:"));
        }
        all
    }

    /// Returns the type, the register and the argument of a line that loads one.
    fn argument<'a>(
        &self,
        line: &'a str,
        arguments: &'a [String],
    ) -> Option<(&'a str, &'a str, &'a str)> {
        let (ty, rest) = line.strip_prefix("ld.param.")?.split_once(' ')?;
        let (register, name) = rest.split_once(", [")?;
        let name = name.trim_end_matches("];");
        let at = self.parameters.iter().position(|own| *own == name)?;
        Some((ty, register, arguments.get(at)?))
    }
}

/// Returns the type of a line that stores the result, and what it stores, to the end of the line.
fn result(line: &str) -> Option<(&str, &str)> {
    let (ty, rest) = line.strip_prefix("st.param.")?.split_once(' ')?;
    Some((ty, rest.strip_prefix("[func_retval0+0], ")?))
}

/// Names the label of a line for the place where the function is copied to.
fn own_labels(line: &str, number: usize) -> String {
    let Some(at) = line.find('$') else {
        return line.to_owned();
    };
    let rest = &line[at..];
    let end = rest.find([';', ':']).unwrap_or(rest.len());
    format!("{}{}_{number}{}", &line[..at], &rest[..end], &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_whole() {
        let n_heads = TEXT.lines().filter(|line| line.contains(".func")).count();
        assert_eq!(ALL.len(), n_heads);
        for function in ALL.values() {
            let Function { name, lines, .. } = function;
            assert_eq!(lines.last(), Some(&"ret;"), "{name}");
            let n_loads = lines.iter().filter(|line| line.starts_with("ld.param"));
            assert!(n_loads.count() <= function.n_parameters(), "{name}");
            let calls = lines.iter().filter(|line| line.contains("call"));
            assert_eq!(calls.count(), 0, "{name} calls another");
        }
        let rounding = function("to_bf16").unwrap();
        assert_eq!(rounding.n_parameters(), 1);
        // It is copied several times with one number.
        assert!(!rounding.lines.iter().any(|line| line.contains('$')));
    }

    #[test]
    fn registers_and_labels_are_of_their_place() {
        let arguments = ["%if0".to_owned()];
        let code = function("erf").unwrap().code("%sf3", &arguments, 3);
        assert_eq!(code[0], "mov.f32 %erf_f4, %if0;");
        let last = code.last().unwrap();
        assert!(last.starts_with("mov.f32 %sf3, %erf_f"), "{last}");
        assert!(
            code.iter()
                .any(|line| line.starts_with("$L__BB") && line.ends_with("_3:"))
        );
    }
}
