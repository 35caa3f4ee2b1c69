//! [`parse`]: PTX from text.

use std::collections::HashMap;

use super::statements::Statements;
use super::{
    Comparison, Global, Instruction, Kernel, Kind, Module, Op, Operand, Part, Register, Round,
    Shuffle, Space, Special, ToInteger,
};

/// Where shared memory begins: an address of 0 is never one of it.
pub(in super::super) const SHARED_BASE: u64 = 1 << 20;

/// Parses a module. `place` gives each of its variables an address.
///
/// # Errors
///
/// The line, and what is not known in it.
pub(in super::super) fn parse(
    text: &str,
    place: &mut dyn FnMut(&[u8]) -> u64,
) -> Result<Module, String> {
    let statements = Statements::of(text);
    let mut parser = Parser {
        lines: Vec::new(),
        at: 0,
        dynamic: Vec::new(),
        shared: Vec::new(),
        globals: HashMap::new(),
    };
    parser.lines.extend(
        statements
            .numbers
            .iter()
            .copied()
            .zip(statements.text.lines()),
    );
    let mut lines = parser.lines.iter();
    if !lines.any(|(_, line)| line.starts_with(".version")) {
        return Err("it has no line .version".to_owned());
    }
    let (mut kernels, mut globals) = (Vec::new(), Vec::new());
    while let Some((number, line)) = parser.next() {
        let first = line.split_whitespace().next().unwrap_or_default();
        match first {
            ".version" | ".target" | ".address_size" => (),
            ".extern" if line.contains(".shared") => {
                let name = line.trim_end_matches("[];").rsplit(' ').next();
                parser.dynamic.push(name.unwrap_or_default());
            }
            ".visible" | ".entry" if line.contains(".entry") => {
                kernels.push(parser.kernel(number, line)?)
            }
            ".shared" => {
                let declared = declared(line.trim_end_matches(';'));
                let declared =
                    declared.ok_or_else(|| format!("line {number}: unknown '{line}'"))?;
                parser.shared.push(declared);
            }
            _ => {
                let (name, bytes) =
                    variable(line).ok_or_else(|| format!("line {number}: unknown '{line}'"))?;
                let address = place(&bytes);
                parser.globals.insert(name, address);
                globals.push(Global {
                    name: name.to_owned(),
                    address,
                    len: bytes.len(),
                });
            }
        }
    }
    Ok(Module { kernels, globals })
}

struct Parser<'t> {
    lines: Vec<(u32, &'t str)>,
    at: usize,
    // Names of the shared memory whose size the launch says.
    dynamic: Vec<&'t str>,
    // Shared memory of all kernels: name, size, alignment.
    shared: Vec<(&'t str, usize, usize)>,
    globals: HashMap<&'t str, u64>,
}

/// Names that instructions of a kernel use.
#[derive(Default)]
struct Names<'t> {
    registers: HashMap<&'t str, Register>,
    // Families as `%r<7>`: a prefix.
    prefixes: Vec<&'t str>,
    parameters: HashMap<&'t str, u64>,
    // Addresses of shared memory, and of variables.
    shared: HashMap<&'t str, u64>,
    labels: HashMap<&'t str, usize>,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Option<(u32, &'t str)> {
        let line = self.lines.get(self.at).copied();
        self.at += 1;
        line
    }

    fn kernel(&mut self, number: u32, head: &'t str) -> Result<Kernel, String> {
        let ends = || format!("line {number}: the kernel has no end");
        let name = head.split(".entry").nth(1).unwrap_or_default();
        let name = name.split('(').next().unwrap_or_default().trim().to_owned();
        let mut names = Names {
            shared: self.globals.clone(),
            ..Names::default()
        };
        let mut shared_bytes = 0_usize;
        for (name, len, alignment) in &self.shared {
            shared_bytes = shared_bytes.next_multiple_of(*alignment);
            names.shared.insert(name, SHARED_BASE + shared_bytes as u64);
            shared_bytes += len;
        }
        let (mut parameters, mut max_threads) = (Vec::new(), None);
        // Parameters stand on lines of their own up to the brace.
        loop {
            let (number, line) = self.next().ok_or_else(ends)?;
            if line.starts_with(".param") {
                let (name, len, alignment) = declared(line.trim_end_matches(','))
                    .ok_or_else(|| format!("line {number}: unknown parameter '{line}'"))?;
                let offset = parameters
                    .last()
                    .map_or(0, |(offset, len): &(usize, usize)| offset + len);
                let offset = offset.next_multiple_of(alignment);
                names.parameters.insert(name, offset as u64);
                parameters.push((offset, len));
            } else if let Some(rest) = line.strip_prefix(".maxntid") {
                let each = rest.split(',').map(|n| n.trim().parse::<u32>());
                max_threads = each
                    .collect::<Result<Vec<_>, _>>()
                    .ok()
                    .map(|all| all.iter().product());
            } else if line == "{" {
                break;
            } else if line != ")"
                && !line.starts_with(".minnctapersm")
                && !line.starts_with(".reqntid")
            {
                return Err(format!("line {number}: unknown '{line}'"));
            }
        }
        let begin = self.at;
        let (mut n_instructions, mut depth) = (0, 0_usize);
        // Labels are used before they stand.
        loop {
            let (number, line) = self.next().ok_or_else(ends)?;
            if line == "}" && depth == 0 {
                break;
            } else if line == "{" || line == "}" {
                // Registers of an inner scope that have one name are one here: each is written before it is read.
                depth = if line == "{" { depth + 1 } else { depth - 1 };
            } else if let Some(label) = line.strip_suffix(':') {
                names.labels.insert(label, n_instructions);
            } else if line.starts_with(".reg") {
                let name = line.trim_end_matches(';').split_whitespace().next_back();
                let name = name.unwrap_or_default();
                names
                    .prefixes
                    .push(name.split('<').next().unwrap_or_default());
            } else if line.starts_with(".shared") {
                let (name, len, alignment) = declared(line.trim_end_matches(';'))
                    .ok_or_else(|| format!("line {number}: unknown '{line}'"))?;
                shared_bytes = shared_bytes.next_multiple_of(alignment);
                names.shared.insert(name, SHARED_BASE + shared_bytes as u64);
                shared_bytes += len;
            } else if line.starts_with(".pragma") || line.starts_with(".loc") {
            } else {
                n_instructions += 1;
            }
        }
        // Shared memory of the launch lies behind that of the kernel.
        shared_bytes = shared_bytes.next_multiple_of(16);
        for name in &self.dynamic {
            names.shared.insert(name, SHARED_BASE + shared_bytes as u64);
        }
        let end = self.at;
        let mut code = Vec::with_capacity(n_instructions);
        for &(number, line) in &self.lines[begin..end - 1] {
            if line.ends_with(':') || line.starts_with(['.', '{', '}']) {
                continue;
            }
            let parsed = names.instruction(line);
            let mut instruction =
                parsed.map_err(|what| format!("line {number}: {what} in '{line}'"))?;
            instruction.line = number;
            code.push(instruction);
        }
        Ok(Kernel {
            name,
            parameters,
            shared_bytes,
            max_threads,
            n_registers: names.registers.len(),
            code,
        })
    }
}

/// Returns the name and the bytes of `.visible .global .align 4 .b8 name[4] = {0, 0, 128, 255};`, `.const .b8 name[8];`.
fn variable(line: &str) -> Option<(&str, Vec<u8>)> {
    let line = line.strip_suffix(';')?;
    let (line, values) = match line.split_once('=') {
        Some((line, values)) => (line.trim(), Some(values.trim())),
        None => (line, None),
    };
    let words = line.strip_prefix(".visible").unwrap_or(line).trim();
    let is_variable = words.starts_with(".global ") || words.starts_with(".const ");
    let (name, len, _) = declared(words).filter(|_| is_variable)?;
    let mut each = words
        .split_whitespace()
        .filter_map(|word| kind(word.strip_prefix('.')?));
    let each = each.next_back()?.len();
    let mut bytes = Vec::with_capacity(len);
    for value in values.into_iter().flat_map(group) {
        bytes.extend(&integer(value)?.to_le_bytes()[..each]);
    }
    if bytes.len() > len || len > 1 << 28 {
        return None;
    }
    bytes.resize(len, 0);
    Some((name, bytes))
}

/// Returns the name, size and alignment of `.param .align 8 .b8 name[48]`, `.shared .align 4 .b8 name[8]`, `.param .u32 name`.
fn declared(line: &str) -> Option<(&str, usize, usize)> {
    let mut words = line.split_whitespace().skip(1).peekable();
    let mut alignment = None;
    if words.next_if_eq(&".align").is_some() {
        alignment = words.next()?.parse().ok();
    }
    let kind = kind(words.next()?.strip_prefix('.')?)?;
    let name = words.next()?;
    let (name, n) = match name.split_once('[') {
        Some((name, n)) => (name, n.strip_suffix(']')?.parse().ok()?),
        None => (name, 1_usize),
    };
    Some((name, n * kind.len(), alignment.unwrap_or(kind.len())))
}

fn kind(word: &str) -> Option<Kind> {
    Some(match word {
        "pred" => Kind::Predicate,
        "f16" => Kind::F16,
        "f32" => Kind::F32,
        "f64" => Kind::F64,
        _ => {
            let bits = word
                .get(1..)?
                .parse()
                .ok()
                .filter(|bits| [8, 16, 32, 64].contains(bits))?;
            match &word[..1] {
                "b" => Kind::Bits(bits),
                "u" => Kind::Unsigned(bits),
                "s" => Kind::Signed(bits),
                _ => return None,
            }
        }
    })
}

impl<'t> Names<'t> {
    fn instruction(&mut self, line: &'t str) -> Result<Instruction, String> {
        let line = line.strip_suffix(';').ok_or("expected ';'")?;
        let (guard, line) = match line.strip_prefix('@') {
            None => (None, line),
            Some(rest) => {
                let (guard, rest) = rest.split_once(' ').ok_or("expected an instruction")?;
                let (guard, is_not) = match guard.strip_prefix('!') {
                    Some(guard) => (guard, true),
                    None => (guard, false),
                };
                (Some((self.register(guard)?, is_not)), rest.trim())
            }
        };
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let parts: Vec<&str> = word.split('.').collect();
        let has = |part: &str| parts.contains(&part);
        let kinds: Vec<Kind> = parts.iter().skip(1).filter_map(|part| kind(part)).collect();
        let kind = kinds.first().copied().unwrap_or(Kind::Bits(32));
        let operands = split(rest);
        let unknown = || format!("unknown '{word}'");
        let round = match () {
            () if has("rm") => Round::Down,
            () if has("rp") => Round::Up,
            () if has("rz") => Round::Zero,
            () => Round::Nearest,
        };
        let part = match () {
            () if has("wide") => Part::Wide,
            () if has("hi") => Part::High,
            () => Part::Low,
        };
        let space = match () {
            () if has("global") => Ok(Space::Global),
            () if has("shared") => Ok(Space::Shared),
            () => Err(unknown()),
        };
        let mut allowed: Vec<&str> = vec!["rn", "rm", "rz", "rp"];
        let op = match parts[0] {
            "mov" if operands.first().is_some_and(|to| to.starts_with('{')) => Op::Split,
            "mov" if operands.get(1).is_some_and(|from| from.starts_with('{')) => Op::Join,
            "mov" | "cvta" => {
                allowed.extend(["to", "global"]);
                Op::Move
            }
            "ld" if has("param") => {
                allowed.extend(["param", "v2", "v4"]);
                Op::LoadParameter
            }
            "ld" => {
                allowed.extend(["global", "shared", "nc", "v2", "v4"]);
                Op::Load(space?)
            }
            "st" => {
                allowed.extend(["global", "shared", "v2", "v4"]);
                Op::Store(space?)
            }
            "add" => Op::Add(round),
            "sub" => Op::Subtract(round),
            "mul" => {
                allowed.extend(["lo", "hi", "wide"]);
                Op::Multiply(part, round)
            }
            "mad" => {
                allowed.extend(["lo", "hi", "wide"]);
                Op::MultiplyAdd(part)
            }
            "fma" => Op::Fused(round),
            // Approximate forms are computed exactly, too.
            "div" => {
                allowed.extend(["full", "approx", "ftz"]);
                Op::Divide
            }
            "rem" => Op::Remainder,
            "min" => Op::Minimum,
            "max" => Op::Maximum,
            "neg" => Op::Negate,
            "abs" => Op::Absolute,
            "and" => Op::And,
            "or" => Op::Or,
            "xor" => Op::Xor,
            "not" => Op::Not,
            "shl" => Op::ShiftLeft,
            "shr" => Op::ShiftRight,
            "bfi" => Op::InsertField,
            "selp" => Op::Select,
            "setp" => {
                allowed.push(parts[1]);
                let comparison = comparison(parts[1], kind).ok_or_else(unknown)?;
                Op::Compare(comparison)
            }
            "cvt" => {
                allowed.extend(["rni", "rzi", "rmi", "rpi", "sat"]);
                let round = match () {
                    () if has("rni") => ToInteger::Nearest,
                    () if has("rzi") => ToInteger::Zero,
                    () if has("rmi") => ToInteger::Down,
                    () if has("rpi") => ToInteger::Up,
                    () => ToInteger::No,
                };
                Op::Convert {
                    round,
                    saturates: has("sat"),
                }
            }
            "ex2" => {
                allowed.extend(["approx", "ftz"]);
                Op::PowerOfTwo {
                    flushes: has("ftz"),
                }
            }
            "lg2" => {
                allowed.extend(["approx", "ftz"]);
                Op::LogarithmOfTwo {
                    flushes: has("ftz"),
                }
            }
            "rcp" => {
                allowed.extend(["approx", "ftz"]);
                Op::Reciprocal {
                    flushes: has("ftz"),
                }
            }
            "sqrt" => {
                allowed.extend(["approx", "ftz"]);
                Op::SquareRoot
            }
            "bra" => {
                allowed.push("uni");
                let label = operands.first().copied().unwrap_or_default();
                let target = self
                    .labels
                    .get(label)
                    .ok_or_else(|| format!("no label '{label}'"))?;
                Op::Branch(*target)
            }
            "ret" => Op::Return,
            "bar" => {
                allowed.push("sync");
                Op::Barrier
            }
            "shfl" => {
                allowed.extend(["sync", "bfly", "down", "up", "idx"]);
                Op::Shuffle(match () {
                    () if has("bfly") => Shuffle::Butterfly,
                    () if has("down") => Shuffle::Down,
                    () if has("up") => Shuffle::Up,
                    () => Shuffle::Index,
                })
            }
            _ => return Err(unknown()),
        };
        let is_known = |part: &&str| allowed.contains(part) || self::kind(part).is_some();
        if !parts.iter().skip(1).all(is_known) {
            return Err(unknown());
        }
        let mut instruction = Instruction {
            guard,
            op,
            kind,
            from: kinds.last().copied().unwrap_or(kind),
            to: Vec::new(),
            operands: Vec::new(),
            line: 0,
        };
        let mut rest = &operands[..];
        match op {
            Op::Branch(_) | Op::Return | Op::Barrier => return Ok(instruction),
            Op::Store(_) => (),
            _ => {
                let (first, others) = rest.split_first().ok_or("expected a register")?;
                for name in group(first) {
                    // What is compared or exchanged may tell a second thing, which nobody asks for here.
                    let name = name.split('|').next().unwrap_or_default();
                    instruction.to.push(self.register(name)?);
                }
                rest = others;
            }
        }
        for operand in rest {
            match operand.strip_prefix('[') {
                None => {
                    for one in group(operand) {
                        let operand = self.operand(one, kind)?;
                        instruction.operands.push(operand);
                    }
                }
                Some(address) => {
                    let address = address.strip_suffix(']').ok_or("expected ']'")?;
                    let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
                    let offset = integer(offset).ok_or("expected an offset")?;
                    match self.parameters.get(base) {
                        Some(at) => instruction
                            .operands
                            .push(Operand::Immediate(at.wrapping_add(offset))),
                        None => {
                            let base = self.operand(base, Kind::Bits(64))?;
                            instruction.operands.push(base);
                            instruction.operands.push(Operand::Immediate(offset));
                        }
                    }
                }
            }
        }
        if op == Op::Split && instruction.to.len() != 2 {
            return Err("expected two registers".to_owned());
        }
        let n_expected = n_operands(&instruction);
        if instruction.operands.len() != n_expected {
            return Err(format!("expected {n_expected} operands"));
        }
        Ok(instruction)
    }

    fn register(&mut self, name: &'t str) -> Result<Register, String> {
        if let Some(known) = self.registers.get(name) {
            return Ok(*known);
        }
        let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if !self.prefixes.contains(&family) {
            return Err(format!("no register '{name}'"));
        }
        let number = Register::try_from(self.registers.len()).map_err(|_| "too many registers")?;
        self.registers.insert(name, number);
        Ok(number)
    }

    fn operand(&mut self, text: &'t str, kind: Kind) -> Result<Operand, String> {
        if let Some(axis) = ["x", "y", "z"]
            .iter()
            .position(|axis| text.rsplit_once('.').is_some_and(|(_, last)| last == *axis))
        {
            let axis = axis as u8;
            return Ok(Operand::Special(
                match text.rsplit_once('.').map(|(name, _)| name) {
                    Some("%tid") => Special::Thread(axis),
                    Some("%ntid") => Special::Threads(axis),
                    Some("%ctaid") => Special::Block(axis),
                    Some("%nctaid") => Special::Blocks(axis),
                    _ => return Err(format!("unknown '{text}'")),
                },
            ));
        }
        if text == "%laneid" {
            return Ok(Operand::Special(Special::Lane));
        }
        if text.starts_with('%') {
            return self.register(text).map(Operand::Register);
        }
        if let Some(address) = self.shared.get(text) {
            return Ok(Operand::Immediate(*address));
        }
        let bits = match text.get(..2) {
            Some("0f") => u32::from_str_radix(&text[2..], 16).ok().map(u64::from),
            Some("0d") => u64::from_str_radix(&text[2..], 16).ok(),
            _ => integer(text).or_else(|| decimal(text, kind)),
        };
        let bits = bits.ok_or_else(|| format!("unknown '{text}'"))?;
        // What is narrower than a register is kept without the sign's bits above.
        let len = kind.len().min(8);
        let mask = if len == 8 {
            u64::MAX
        } else {
            (1 << (8 * len)) - 1
        };
        Ok(Operand::Immediate(if kind == Kind::Predicate {
            bits
        } else {
            bits & mask
        }))
    }
}

fn n_operands(instruction: &Instruction) -> usize {
    let n = instruction.to.len();
    match instruction.op {
        Op::Load(_) => 2,
        Op::Store(_) => instruction.operands.len().max(3),
        Op::Move | Op::LoadParameter if n > 0 => 1,
        Op::Negate
        | Op::Absolute
        | Op::Not
        | Op::Convert { .. }
        | Op::PowerOfTwo { .. }
        | Op::LogarithmOfTwo { .. }
        | Op::Reciprocal { .. }
        | Op::SquareRoot
        | Op::Split => 1,
        Op::MultiplyAdd(_) | Op::Fused(_) | Op::Select => 3,
        Op::InsertField | Op::Shuffle(_) => 4,
        _ => 2,
    }
}

/// Splits operands at commas outside of braces and brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut all, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => (),
        }
    }
    let last = text[begin..].trim();
    if !last.is_empty() {
        all.push(last);
    }
    all
}

/// Returns the members of `{a, b}`, or the operand itself.
fn group(text: &str) -> impl Iterator<Item = &str> {
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    inner.unwrap_or(text).split(',').map(str::trim)
}

fn integer(text: &str) -> Option<u64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Returns the bits of a number that is written with a point.
fn decimal(text: &str, kind: Kind) -> Option<u64> {
    if !text.contains('.') {
        return None;
    }
    match kind {
        Kind::F32 => text
            .parse()
            .ok()
            .map(|value: f32| u64::from(value.to_bits())),
        Kind::F64 => text.parse().ok().map(|value: f64| value.to_bits()),
        _ => None,
    }
}

fn comparison(word: &str, kind: Kind) -> Option<Comparison> {
    let is_float = matches!(kind, Kind::F16 | Kind::F32 | Kind::F64);
    Some(match word {
        "eq" => Comparison::Equal,
        "ne" => Comparison::NotEqual,
        "lt" | "lo" => Comparison::Less,
        "le" | "ls" => Comparison::LessEqual,
        "gt" | "hi" => Comparison::Greater,
        "ge" | "hs" => Comparison::GreaterEqual,
        "equ" if is_float => Comparison::EqualOrNan,
        "neu" if is_float => Comparison::NotEqualOrNan,
        "ltu" if is_float => Comparison::LessOrNan,
        "leu" if is_float => Comparison::LessEqualOrNan,
        "gtu" if is_float => Comparison::GreaterOrNan,
        "geu" if is_float => Comparison::GreaterEqualOrNan,
        "num" if is_float => Comparison::Numbers,
        "nan" if is_float => Comparison::Nan,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_75\n.address_size 64\n";

    fn error(body: &str) -> String {
        let text = format!(
            "{HEAD}.visible .entry k(\n.param .u64 p\n)\n{{\n.reg .b32 %r<9>;\n{body}\nret;\n}}\n"
        );
        parse(&text, &mut |_| 0).err().unwrap_or_default()
    }

    #[test]
    fn what_is_not_known_is_refused_by_name_and_line() {
        assert_eq!(error("mov.u32 %r1, %tid.x;"), "");
        assert_eq!(
            error("dp4a.u32 %r1, %r1, %r1;"),
            "line 9: unknown 'dp4a.u32' in 'dp4a.u32 %r1, %r1, %r1;'"
        );
        assert_eq!(
            error("ld.volatile.global.u32 %r1, [%r1];"),
            "line 9: unknown 'ld.volatile.global.u32' in 'ld.volatile.global.u32 %r1, [%r1];'"
        );
        assert_eq!(
            error("mov.u32 %x1, 1;"),
            "line 9: no register '%x1' in 'mov.u32 %x1, 1;'"
        );
        assert_eq!(error("bra away;"), "line 9: no label 'away' in 'bra away;'");
        assert_eq!(
            error("add.s32 %r1, %r2;"),
            "line 9: expected 2 operands in 'add.s32 %r1, %r2;'"
        );
        assert_eq!(
            parse("hello", &mut |_| 0).err().unwrap(),
            "it has no line .version"
        );
        assert_eq!(
            parse(&format!("{HEAD}.func f"), &mut |_| 0).err().unwrap(),
            "line 4: unknown '.func f'"
        );
    }

    #[test]
    fn parameters_lie_as_in_c() {
        let text = format!(
            "{HEAD}.visible .entry k(\n.param .u32 a,\n.param .u64 b,\n.param .align 8 .b8 c[12]\n)\n.maxntid 256, 1, 1\n{{\nret;\n}}\n"
        );
        let module = parse(&text, &mut |_| 0).unwrap();
        let kernel = &module.kernels[0];
        assert_eq!(kernel.parameters, [(0, 4), (8, 8), (16, 12)]);
        assert_eq!(
            (kernel.parameter_bytes(), kernel.max_threads),
            (28, Some(256))
        );
    }

    #[test]
    fn statements_may_stand_on_one_line() {
        let body = ".reg .b64 \t%rd<2>; .reg .f32 %f<5>; ld.param.u64 %rd1, [p]; mov.f32 %f1, 1.5; here: ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; ret;";
        let text = format!("{HEAD}.visible .entry k(.param .u64 p, .param .f32 q) {{ {body} }}");
        let module = parse(&text, &mut |_| 0).unwrap();
        let kernel = &module.kernels[0];
        assert_eq!((kernel.name.as_str(), kernel.code.len()), ("k", 4));
        assert_eq!(kernel.parameters, [(0, 8), (8, 4)]);
        let bits = u64::from(1.5_f32.to_bits());
        assert_eq!(kernel.code[1].operands, [Operand::Immediate(bits)]);
        let empty = format!("{HEAD}.visible .entry k() {{ ret; }}");
        assert_eq!(parse(&empty, &mut |_| 0).unwrap().kernels[0].code.len(), 1);
    }

    #[test]
    fn variables_get_places_and_bytes() {
        let mut placed = Vec::new();
        let text = format!(
            "{HEAD}.visible .global .align 128 .b8 a[4] = {{0, 0, 128, 255}};\n.const .align 4 .b8 b[8];\n.visible .entry k() {{ .reg .b64 %rd<2>; mov.u64 %rd1, a; ret; }}"
        );
        let module = parse(&text, &mut |bytes| {
            placed.push(bytes.to_vec());
            placed.len() as u64 * 4096
        });
        let module = module.unwrap();
        assert_eq!(placed, [vec![0, 0, 128, 255], vec![0; 8]]);
        assert_eq!(
            (module.globals[1].name.as_str(), module.globals[1].len),
            ("b", 8)
        );
        assert_eq!(
            module.kernels[0].code[0].operands,
            [Operand::Immediate(4096)]
        );
        let wrong = format!("{HEAD}.global .b8 a[1] = {{1, 2}};");
        assert!(parse(&wrong, &mut |_| 0).is_err());
    }
}
