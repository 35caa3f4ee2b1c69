//! Programs of any size, alike on every machine.

use std::fmt::Write as _;

/// A sequence of numbers that looks random; the generator is SplitMix64.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// Returns the next number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % limit as u64) as usize
    }
}

/// Returns functions of this many operations each: constants, arithmetic in an operation's own form
/// and in generic form, prints in a chain, operations with attributes.
pub fn mixed(n_functions: usize, n_operations: usize) -> String {
    let mut text = String::new();
    let mut numbers = Numbers::new(1);
    for function in 0..n_functions {
        mixed_function(&mut text, &mut numbers, function, n_operations)
            .expect("a String takes all text");
    }
    text
}

fn mixed_function(
    text: &mut String,
    numbers: &mut Numbers,
    function: usize,
    n_operations: usize,
) -> std::fmt::Result {
    writeln!(
        text,
        "func.func @f{function}(%a: i32, %c: !tfrt.chain) -> (i32, !tfrt.chain) {{"
    )?;
    // The latest values, which operations choose their operands from.
    let mut recent: Vec<String> = vec!["%a".to_owned()];
    let mut chain = "%c".to_owned();
    for index in 0..n_operations {
        let mut pick = |recent: &[String]| recent[numbers.below(recent.len())].clone();
        let (lhs, rhs) = (pick(&recent), pick(&recent));
        match numbers.below(20) {
            0..5 => writeln!(
                text,
                "  %v{index} = tfrt.constant.i32 {}",
                numbers.below(1000)
            )?,
            5..13 => writeln!(text, "  %v{index} = tfrt.add.i32 {lhs}, {rhs}")?,
            13..15 => {
                writeln!(text, "  %ch{index} = tfrt.print.i32 {lhs}, {chain}")?;
                chain = format!("%ch{index}");
                continue;
            }
            15..18 => writeln!(
                text,
                "  %v{index} = \"tfrt.minus.i32\"({lhs}, {rhs}) : (i32, i32) -> i32"
            )?,
            _ => writeln!(
                text,
                "  %v{index} = \"tfrt_test.async_add.i32\"({lhs}, {rhs}) {{note = \"n{index}\"}} : (i32, i32) -> i32"
            )?,
        }
        const N_RECENT: usize = 8;
        if recent.len() == N_RECENT {
            recent.remove(0);
        }
        recent.push(format!("%v{index}"));
    }
    let last = recent.last().expect("it begins with an argument");
    writeln!(text, "  tfrt.return {last}, {chain} : i32, !tfrt.chain\n}}")
}

/// Returns one function that is a chain of this many operations, each on the result of the one
/// before, in the shortest form that there is.
pub fn chain(n_operations: usize) -> String {
    let mut text = String::from("func.func @main(%v0: i32) -> i32 {\n");
    for index in 1..=n_operations {
        let before = index - 1;
        writeln!(text, "  %v{index} = tfrt.add.i32 %v{before}, %v{before}")
            .expect("a String takes all text");
    }
    write!(text, "  tfrt.return %v{n_operations} : i32\n}}\n").expect("a String takes all text");
    text
}

/// Returns one function with this many constants of 64 numbers each.
pub fn tables(n_operations: usize) -> String {
    let mut text = String::from("func.func @main() {\n");
    let mut numbers = Numbers::new(2);
    for index in 0..n_operations {
        let list: Vec<String> = (0..64)
            .map(|_| numbers.below(1 << 20).to_string())
            .collect();
        writeln!(
            text,
            "  %t{index} = \"my.table\"() {{value = dense<[{}]> : tensor<64xi32>}} : () -> i32",
            list.join(", ")
        )
        .expect("a String takes all text");
    }
    text.push_str("  tfrt.return\n}\n");
    text
}
