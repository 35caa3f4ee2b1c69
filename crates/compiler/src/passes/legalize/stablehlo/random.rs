//! Random bits, by the generators of the specification: counters that are encrypted.

use tfrt_ir::{OpId, Type, ValueId};

use super::build::{unsigned, width};
use super::shapes::known_dims;
use super::sizes::{Size, known_sizes};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] =
    &[("stablehlo.rng_bit_generator", rng_bit_generator)];

/// A call whose second operand is the list of extents, as JAX writes it for extents that are symbols.
pub(super) const CALLS: &[(&str, LowerFn)] =
    &[("stablehlo.dynamic_rng_bit_generator", dynamic_generator)];

fn rng_bit_generator(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, _) = l.stated(op, 1)?;
    known_dims(&dims)?;
    generated(l, op, &known_sizes(&dims))
}

fn dynamic_generator(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let (dims, _) = l.stated(op, 1)?;
    let sizes = l.sizes_of(op, 1, dims.len())?;
    let fits = |(size, dim): (&Size, &i64)| *dim < 0 || size.dim() < 0 || size.dim() == *dim;
    if !sizes.iter().zip(&dims).all(fits) {
        return Err(format!("gives extents {sizes:?}, expected {dims:?}"));
    }
    generated(l, op, &sizes)
}

/// Generates a tensor of random bits of these extents.
fn generated(l: &mut Lowering<'_>, op: OpId, sizes: &[Size]) -> Lowered {
    let state = l.operand(op, 0)?;
    let (_, element) = l.stated(op, 1)?;
    if l.element(state) != Type::UI64 {
        return Err(format!(
            "has a state of {}, expected ui64",
            l.element(state)
        ));
    }
    let n_words = l.dims(state).iter().product::<i64>();
    let algorithm = l.word(op, "rng_algorithm").to_owned();
    match (algorithm.as_str(), n_words) {
        ("THREE_FRY", 2) | ("DEFAULT", 2) => l.threefry(state, sizes, &element),
        ("PHILOX", 2 | 3) | ("DEFAULT", 3) => l.philox(state, sizes, &element),
        (other, n) => Err(format!(
            "generates bits by '{other}' with a state of {n} numbers"
        )),
    }
}

/// The number of rounds of Threefry, and the distances by which bits turn.
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];

impl Lowering<'_> {
    fn word_of(&mut self, value: u32) -> ValueId {
        self.elements(&[], &Type::UI32, value.to_le_bytes().to_vec())
    }

    /// Returns the lower and the upper half of numbers of 64 bits.
    fn halves(&mut self, x: ValueId) -> [ValueId; 2] {
        let amount = self.number(&Type::UI64, 32.0);
        let upper = self.binary("shift_right", x, amount);
        let mask = self.elements(&[], &Type::UI64, u64::from(u32::MAX).to_le_bytes().to_vec());
        let lower = self.binary("bit_and", x, mask);
        [lower, upper].map(|half| self.cast(half, &Type::UI32))
    }

    fn together(&mut self, lower: ValueId, upper: ValueId) -> ValueId {
        let [lower, upper] = [lower, upper].map(|half| self.cast(half, &Type::UI64));
        let amount = self.number(&Type::UI64, 32.0);
        let upper = self.binary("shift_left", upper, amount);
        self.binary("bit_or", lower, upper)
    }

    /// Encrypts a counter of two numbers by a key of two, in 20 rounds.
    fn threefry_block(&mut self, key: [ValueId; 2], counter: [ValueId; 2]) -> [ValueId; 2] {
        let parity = self.word_of(0x1bd1_1bda);
        let mixed = self.binary("bit_xor", key[0], key[1]);
        let keys = [key[0], key[1], self.binary("bit_xor", mixed, parity)];
        let mut x = [
            self.binary("add", counter[0], keys[0]),
            self.binary("add", counter[1], keys[1]),
        ];
        for group in 0..5 {
            for distance in ROTATIONS[group % 2] {
                x[0] = self.binary("add", x[0], x[1]);
                let (left, right) = (self.word_of(distance), self.word_of(32 - distance));
                let upper = self.binary("shift_left", x[1], left);
                let lower = self.binary("shift_right", x[1], right);
                let turned = self.binary("bit_or", upper, lower);
                x[1] = self.binary("bit_xor", x[0], turned);
            }
            let number = u32::try_from(group + 1).unwrap_or(0);
            let number = self.word_of(number);
            x[0] = self.binary("add", x[0], keys[(group + 1) % 3]);
            let second = self.binary("add", keys[(group + 2) % 3], number);
            x[1] = self.binary("add", x[1], second);
        }
        x
    }

    /// Returns the first number of a state, and the second one.
    fn state_parts(&mut self, state: ValueId) -> Vec<ValueId> {
        let n = self.dims(state).iter().product::<i64>();
        let flat = self.reshaped(state, &[n]);
        (0..n)
            .map(|at| {
                let part = self.part(flat, 0, at, at + 1, 1);
                self.reshaped(part, &[])
            })
            .collect()
    }

    fn threefry(&mut self, state: ValueId, sizes: &[Size], element: &Type) -> Lowered {
        let parts = self.state_parts(state);
        let count = self.size_product(sizes)?;
        let is_long = width(element) == 64;
        // Narrow types take half the words: of 64 bits each block gives one number, of 32 two.
        let n_blocks = self.n_blocks(count, if is_long { 1 } else { 2 })?;
        let key = self.halves(parts[0]);
        let offsets = self.numbers_below(n_blocks, &Type::UI64);
        let counters = self.binary("add", parts[1], offsets);
        let counters = self.halves(counters);
        let [x, y] = self.threefry_block(key, counters);
        let bits = if is_long {
            self.together(x, y)
        } else {
            let both = self.concatenated(&[x, y], 0);
            self.first_along(both, 0, count)
        };
        let next = self.size_number(n_blocks);
        let next = self.cast(next, &Type::UI64);
        let next = self.binary("add", parts[1], next);
        self.random_results(state, &[parts[0], next], bits, sizes, element)
    }

    /// Returns how many blocks so many numbers are made of.
    fn n_blocks(&mut self, count: Size, per_block: i64) -> Result<Size, String> {
        let more = self.size_sum(count, Size::Known(per_block - 1))?;
        self.size_quotient(more, Size::Known(per_block))
    }

    /// Makes the results: the next state, and bits of the type that is wanted.
    fn random_results(
        &mut self,
        state: ValueId,
        next: &[ValueId],
        bits: ValueId,
        sizes: &[Size],
        element: &Type,
    ) -> Lowered {
        let next: Vec<ValueId> = next.iter().map(|part| self.reshaped(*part, &[1])).collect();
        let next = self.concatenated(&next, 0);
        let state_dims = self.dims(state);
        let next = self.reshaped(next, &state_dims);
        let mut bits = bits;
        let narrow = unsigned(width(element));
        if self.element(bits) != narrow {
            let mask = f64::powi(2.0, width(element).cast_signed()) - 1.0;
            bits = {
                let by = self.element(bits);
                let mask = self.number(&by, mask);
                self.binary("bit_and", bits, mask)
            };
            bits = self.cast(bits, &narrow);
        }
        let bits = self.bits(bits, element);
        let bits = self.resized(bits, sizes);
        Ok(vec![Bound::Tensor(next), Bound::Tensor(bits)])
    }

    /// Multiplies words to numbers of 64 bits; returns the lower and the upper half.
    fn wide_product(&mut self, x: ValueId, y: u32) -> [ValueId; 2] {
        let wide = self.cast(x, &Type::UI64);
        let y = self.elements(&[], &Type::UI64, u64::from(y).to_le_bytes().to_vec());
        let product = self.binary("mul", wide, y);
        self.halves(product)
    }

    fn philox(&mut self, state: ValueId, sizes: &[Size], element: &Type) -> Lowered {
        let parts = self.state_parts(state);
        let count = self.size_product(sizes)?;
        let is_long = width(element) == 64;
        let per_block = if is_long { 2 } else { 4 };
        let n_blocks = self.n_blocks(count, per_block)?;
        let offsets = self.numbers_below(n_blocks, &Type::UI64);
        // The counter has 128 bits: the lower half may run over.
        let lower = self.binary("add", parts[1], offsets);
        let one = self.number(&Type::UI64, 1.0);
        let zero = self.number(&Type::UI64, 0.0);
        let upper = match parts.get(2) {
            Some(upper) => {
                let runs_over = self.compare("lt", lower, parts[1]);
                let more = self.binary("add", *upper, one);
                self.select(runs_over, more, *upper)
            }
            None => zero,
        };
        let (low, high) = (self.halves(lower), self.halves(upper));
        let mut x = [low[0], low[1], high[0], high[1]];
        let mut key = self.halves(parts[0]);
        for _ in 0..10 {
            let first = self.wide_product(x[0], 0xd251_1f53);
            let second = self.wide_product(x[2], 0xcd9e_8d57);
            let mixed = self.binary("bit_xor", second[1], x[1]);
            let left = self.binary("bit_xor", mixed, key[0]);
            let mixed = self.binary("bit_xor", first[1], x[3]);
            let right = self.binary("bit_xor", mixed, key[1]);
            x = [left, second[0], right, first[0]];
            let steps = [self.word_of(0x9e37_79b9), self.word_of(0xbb67_ae85)];
            key = [
                self.binary("add", key[0], steps[0]),
                self.binary("add", key[1], steps[1]),
            ];
        }
        let numbers = if is_long {
            vec![self.together(x[0], x[1]), self.together(x[2], x[3])]
        } else {
            x.to_vec()
        };
        // Numbers of a block lie beside one another.
        let columns: Vec<ValueId> = numbers
            .iter()
            .map(|number| {
                let wide = self.widened(*number, &[n_blocks]);
                self.resized(wide, &[n_blocks, Size::Known(1)])
            })
            .collect();
        let all = self.concatenated(&columns, 1);
        let n_made = self.size_product(&[n_blocks, Size::Known(per_block)])?;
        let all = self.resized(all, &[n_made]);
        let bits = self.first_along(all, 0, count);
        let step = self.size_number(n_blocks);
        let step = self.cast(step, &Type::UI64);
        let next = self.binary("add", parts[1], step);
        let mut next = vec![parts[0], next];
        if let Some(upper) = parts.get(2) {
            let runs_over = self.compare("lt", next[1], parts[1]);
            let more = self.binary("add", *upper, one);
            next.push(self.select(runs_over, more, *upper));
        }
        self.random_results(state, &next, bits, sizes, element)
    }
}
