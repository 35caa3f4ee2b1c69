//! Products of rows and columns of a few bits, by units of the columns' bytes as they lie.
//!
//! A unit is 64 bytes: sixteen words, the lanes. The elements of a word that begin at one bit are a plane of the unit; rows
//! are laid out in the same planes, so that a plane is multiplied by vectors and no column is unpacked. Each lane has a sum
//! for its block, which is scaled and added to the lane's sum of the column; at last the lanes are added, in halves. So the
//! bits of a product depend neither on the number of rows nor on the length of vectors. AVX2 rounds once for each product
//! and sum, the plain code twice.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over registers, whose numbers are known"
)]

/// Number of words of a unit.
pub(super) const LANES: usize = 16;
/// Number of bytes of a unit.
pub(super) const UNIT: usize = 4 * LANES;
/// The most rows that a unit is multiplied by at once.
pub(super) const MAX_ROWS: usize = 4;

/// A number for each word of a unit.
pub(super) type Lanes = [f32; LANES];

/// Rows in planes: for each row its units, for each unit its planes.
#[derive(Debug)]
pub(super) struct PlanedRows {
    planes: Vec<Lanes>,
    /// Number of planes of a row.
    n_planes: usize,
}

impl PlanedRows {
    /// Lays out rows of `len` elements for columns. Behind a row's end are zeros, up to that of columns.
    pub(super) fn new(rows: &[f32], len: usize, columns: &UnitColumns<'_>) -> PlanedRows {
        let in_word = 32 / columns.bits;
        let n_planes = columns.column_bytes().div_ceil(UNIT) * in_word;
        let n_rows = rows.len().checked_div(len).unwrap_or(0);
        let mut planes = vec![[0.0; LANES]; n_rows * n_planes];
        for (row, planes) in rows
            .chunks_exact(len.max(1))
            .zip(planes.chunks_exact_mut(n_planes.max(1)))
        {
            for (row, unit) in row
                .chunks(in_word * LANES)
                .zip(planes.chunks_exact_mut(in_word))
            {
                for (lane, word) in row.chunks(in_word).enumerate() {
                    for (plane, element) in unit.iter_mut().zip(word) {
                        plane[lane] = *element;
                    }
                }
            }
        }
        PlanedRows { planes, n_planes }
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.planes.len().checked_div(self.n_planes).unwrap_or(0)
    }

    fn row(&self, index: usize) -> &[Lanes] {
        &self.planes[index * self.n_planes..][..self.n_planes]
    }
}

/// Columns whose blocks are a whole number of words.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitColumns<'a> {
    /// For each column the bytes of its blocks.
    pub codes: &'a [u8],
    /// The bits of an element: 2, 4 or 8.
    pub bits: usize,
    /// For each column the factors of its blocks.
    pub scales: &'a [f32],
    /// For each column the zero points of its blocks; the middle of the range without any.
    pub zeros: Option<&'a [f32]>,
    /// Number of words of a block: a power of two.
    pub block_words: usize,
    /// Number of blocks of a column.
    pub n_blocks: usize,
}

impl UnitColumns<'_> {
    /// Returns the number of bytes of a column.
    fn column_bytes(&self) -> usize {
        self.n_blocks * self.block_words * 4
    }

    /// Makes the products of all rows and of columns from the `first` on: for each column those of all rows.
    pub(super) fn products(&self, rows: &PlanedRows, first: usize, out: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = avx2::simd() {
            struct Products<'a, V>(V, UnitColumns<'a>, &'a PlanedRows, usize, &'a mut [f32]);
            impl<V: Vectors> pulp::NullaryFnOnce for Products<'_, V> {
                type Output = ();

                #[inline(always)]
                fn call(self) {
                    self.1.products_by(self.0, self.2, self.3, self.4);
                }
            }
            return simd.vectorize(Products(avx2::Avx2(simd), *self, rows, first, out));
        }
        self.products_by(plain::Plain, rows, first, out);
    }

    #[inline(always)]
    fn products_by(&self, by: impl Vectors, rows: &PlanedRows, first: usize, out: &mut [f32]) {
        match (self.bits, self.zeros.is_some()) {
            (2, false) => self.all::<2, false>(by, rows, first, out),
            (2, true) => self.all::<2, true>(by, rows, first, out),
            (4, false) => self.all::<4, false>(by, rows, first, out),
            (4, true) => self.all::<4, true>(by, rows, first, out),
            (_, false) => self.all::<8, false>(by, rows, first, out),
            (_, true) => self.all::<8, true>(by, rows, first, out),
        }
    }

    #[inline(always)]
    fn all<const BITS: usize, const HAS_ZEROS: bool>(
        &self,
        by: impl Vectors,
        rows: &PlanedRows,
        first: usize,
        out: &mut [f32],
    ) {
        let n_rows = rows.len();
        let mut row = 0;
        while row < n_rows {
            // Rows that are multiplied together stay near while columns pass by.
            let n = match n_rows - row {
                1 => 1,
                2 | 3 => 2,
                _ => MAX_ROWS,
            };
            for (index, out) in out.chunks_exact_mut(n_rows).enumerate() {
                let column = self.column(first + index);
                let out = &mut out[row..row + n];
                match n {
                    1 => some::<_, BITS, HAS_ZEROS, 1>(by, &column, rows, row, out),
                    2 => some::<_, BITS, HAS_ZEROS, 2>(by, &column, rows, row, out),
                    _ => some::<_, BITS, HAS_ZEROS, MAX_ROWS>(by, &column, rows, row, out),
                }
            }
            row += n;
        }
    }

    #[inline(always)]
    fn column(&self, index: usize) -> UnitColumns<'_> {
        let n_bytes = self.column_bytes();
        let blocks = index * self.n_blocks..(index + 1) * self.n_blocks;
        UnitColumns {
            codes: &self.codes[index * n_bytes..][..n_bytes],
            scales: &self.scales[blocks.clone()],
            zeros: match self.zeros {
                Some(zeros) => Some(&zeros[blocks]),
                None => None,
            },
            ..*self
        }
    }

    /// Spreads numbers of blocks over the words of a unit.
    #[inline(always)]
    fn spread<V: Vectors>(&self, by: V, list: &[f32], unit: usize) -> V::Floats {
        let first = unit * LANES / self.block_words;
        let list = &list[first..];
        let n = LANES.div_ceil(self.block_words);
        if list.len() < n {
            // The last unit is not whole.
            let of = |lane: usize| list.get(lane / self.block_words).copied().unwrap_or(0.0);
            return by.load(&std::array::from_fn(of));
        }
        match (self.block_words, list) {
            (1, [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..]) => by.load(&[
                *a, *b, *c, *d, *e, *f, *g, *h, *i, *j, *k, *l, *m, *n, *o, *p,
            ]),
            (2, [a, b, c, d, e, f, g, h, ..]) => by.load(&[
                *a, *a, *b, *b, *c, *c, *d, *d, *e, *e, *f, *f, *g, *g, *h, *h,
            ]),
            (4, [a, b, c, d, ..]) => by.quarters([*a, *b, *c, *d]),
            (8, [a, b, ..]) => by.quarters([*a, *a, *b, *b]),
            (_, [a, ..]) => by.quarters([*a; 4]),
            _ => by.load(&[0.0; LANES]),
        }
    }
}

/// Makes the products of a column and some rows.
#[inline(always)]
fn some<V: Vectors, const BITS: usize, const HAS_ZEROS: bool, const N_ROWS: usize>(
    by: V,
    column: &UnitColumns<'_>,
    rows: &PlanedRows,
    first: usize,
    out: &mut [f32],
) {
    let in_word = 32 / BITS;
    let mut all: [&[Lanes]; N_ROWS] = [&[]; N_ROWS];
    for row in 0..N_ROWS {
        all[row] = rows.row(first + row);
    }
    let mut sums = [by.load(&[0.0; LANES]); N_ROWS];
    let (units, rest) = column.codes.as_chunks::<UNIT>();
    for (index, unit) in units.iter().enumerate() {
        let mut planes = all;
        for row in 0..N_ROWS {
            planes[row] = &all[row][index * in_word..][..in_word];
        }
        sums = add_unit::<V, BITS, HAS_ZEROS, N_ROWS>(by, column, index, unit, planes, sums);
    }
    if !rest.is_empty() {
        let mut unit = [0; UNIT];
        unit[..rest.len()].copy_from_slice(rest);
        let index = units.len();
        let mut planes = all;
        for row in 0..N_ROWS {
            planes[row] = &all[row][index * in_word..][..in_word];
        }
        sums = add_unit::<V, BITS, HAS_ZEROS, N_ROWS>(by, column, index, &unit, planes, sums);
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = by.sum(sum);
    }
}

/// Adds the products of a unit and some rows to the lanes' sums.
#[inline(always)]
fn add_unit<V: Vectors, const BITS: usize, const HAS_ZEROS: bool, const N_ROWS: usize>(
    by: V,
    column: &UnitColumns<'_>,
    index: usize,
    unit: &[u8; UNIT],
    planes: [&[Lanes]; N_ROWS],
    mut sums: [V::Floats; N_ROWS],
) -> [V::Floats; N_ROWS] {
    let words = by.words(unit);
    let mut own = [by.load(&[0.0; LANES]); N_ROWS];
    let zeros = match column.zeros {
        Some(zeros) if HAS_ZEROS => column.spread(by, zeros, index),
        _ => own[0],
    };
    let words = match HAS_ZEROS {
        true => words,
        // What lies in the middle of the range becomes 0 of a signed number.
        false => by.flip(words, middles(BITS)),
    };
    for plane in 0..32 / BITS {
        let factor = match HAS_ZEROS {
            true => by.minus(by.unsigned::<BITS>(words, plane), zeros),
            false => by.signed::<BITS>(words, plane),
        };
        for row in 0..N_ROWS {
            own[row] = by.multiply_add(factor, by.load(&planes[row][plane]), own[row]);
        }
    }
    let scales = column.spread(by, column.scales, index);
    for row in 0..N_ROWS {
        sums[row] = by.multiply_add(own[row], scales, sums[row]);
    }
    sums
}

/// Returns a word whose elements are the middle of the range.
const fn middles(bits: usize) -> u32 {
    match bits {
        2 => 0xaaaa_aaaa,
        4 => 0x8888_8888,
        _ => 0x8080_8080,
    }
}

/// Operations on a number for each word of a unit.
pub(super) trait Vectors: Copy {
    type Words: Copy;
    type Floats: Copy;

    fn words(self, unit: &[u8; UNIT]) -> Self::Words;
    /// Flips the bits of a mask.
    fn flip(self, words: Self::Words, mask: u32) -> Self::Words;
    /// Returns the elements of a plane as signed numbers.
    fn signed<const BITS: usize>(self, words: Self::Words, plane: usize) -> Self::Floats;
    /// Returns the elements of a plane as numbers without a sign.
    fn unsigned<const BITS: usize>(self, words: Self::Words, plane: usize) -> Self::Floats;
    fn load(self, lanes: &Lanes) -> Self::Floats;
    /// Returns each number four times.
    fn quarters(self, list: [f32; 4]) -> Self::Floats;
    fn minus(self, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a * b + c`
    fn multiply_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    /// Adds all numbers, in halves.
    fn sum(self, a: Self::Floats) -> f32;
}

/// Adds the second half to the first, until one number is left.
#[inline(always)]
fn halved(mut lanes: Lanes) -> f32 {
    let mut n = LANES / 2;
    while n > 0 {
        for lane in 0..n {
            lanes[lane] += lanes[lane + n];
        }
        n /= 2;
    }
    lanes[0]
}

mod plain {
    use super::{LANES, Lanes, UNIT, Vectors, halved};

    /// Arrays, as the compiler makes vectors of them.
    #[derive(Clone, Copy)]
    pub(super) struct Plain;

    impl Vectors for Plain {
        type Words = [u32; LANES];
        type Floats = Lanes;

        fn words(self, unit: &[u8; UNIT]) -> [u32; LANES] {
            let (words, _) = unit.as_chunks();
            std::array::from_fn(|lane| u32::from_le_bytes(words[lane]))
        }

        fn flip(self, words: [u32; LANES], mask: u32) -> [u32; LANES] {
            words.map(|word| word ^ mask)
        }

        fn signed<const BITS: usize>(self, words: [u32; LANES], plane: usize) -> Lanes {
            let (left, right) = (32 - BITS - BITS * plane, 32 - BITS);
            words.map(|word| ((word << left).cast_signed() >> right) as f32)
        }

        fn unsigned<const BITS: usize>(self, words: [u32; LANES], plane: usize) -> Lanes {
            let mask = u32::MAX >> (32 - BITS);
            words.map(|word| (word >> (BITS * plane) & mask) as f32)
        }

        fn load(self, lanes: &Lanes) -> Lanes {
            *lanes
        }

        fn quarters(self, list: [f32; 4]) -> Lanes {
            std::array::from_fn(|lane| list[lane / 4])
        }

        fn minus(self, a: Lanes, b: Lanes) -> Lanes {
            std::array::from_fn(|lane| a[lane] - b[lane])
        }

        fn multiply_add(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes {
            std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
        }

        fn sum(self, a: Lanes) -> f32 {
            halved(a)
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m256, __m256i};

    use pulp::cast;
    use pulp::x86::V3;

    use super::{Lanes, UNIT, Vectors, halved};
    use crate::math::packed_gemm::InstructionSet;

    /// Returns the right to use the instructions, if the processor has them and the process may use them.
    pub(super) fn simd() -> Option<V3> {
        match InstructionSet::Avx2.is_available() {
            true => V3::try_new(),
            false => None,
        }
    }

    /// Two vectors of eight.
    #[derive(Clone, Copy)]
    pub(super) struct Avx2(pub V3);

    impl Vectors for Avx2 {
        type Words = [__m256i; 2];
        type Floats = [__m256; 2];

        #[inline(always)]
        fn words(self, unit: &[u8; UNIT]) -> [__m256i; 2] {
            cast(*unit)
        }

        #[inline(always)]
        fn flip(self, words: [__m256i; 2], mask: u32) -> [__m256i; 2] {
            let V3 { avx, avx2, .. } = self.0;
            let mask = avx._mm256_set1_epi32(mask.cast_signed());
            let [a, b] = words;
            [
                avx2._mm256_xor_si256(a, mask),
                avx2._mm256_xor_si256(b, mask),
            ]
        }

        #[inline(always)]
        fn signed<const BITS: usize>(self, words: [__m256i; 2], plane: usize) -> [__m256; 2] {
            let V3 {
                avx, avx2, sse2, ..
            } = self.0;
            let left = sse2._mm_cvtsi32_si128((32 - BITS - BITS * plane) as i32);
            let right = sse2._mm_cvtsi32_si128((32 - BITS) as i32);
            let [a, b] = words;
            let a = avx2._mm256_sra_epi32(avx2._mm256_sll_epi32(a, left), right);
            let b = avx2._mm256_sra_epi32(avx2._mm256_sll_epi32(b, left), right);
            [avx._mm256_cvtepi32_ps(a), avx._mm256_cvtepi32_ps(b)]
        }

        #[inline(always)]
        fn unsigned<const BITS: usize>(self, words: [__m256i; 2], plane: usize) -> [__m256; 2] {
            let V3 {
                avx, avx2, sse2, ..
            } = self.0;
            let right = sse2._mm_cvtsi32_si128((BITS * plane) as i32);
            let mask = avx._mm256_set1_epi32((1 << BITS) - 1);
            let [a, b] = words;
            let a = avx2._mm256_and_si256(avx2._mm256_srl_epi32(a, right), mask);
            let b = avx2._mm256_and_si256(avx2._mm256_srl_epi32(b, right), mask);
            [avx._mm256_cvtepi32_ps(a), avx._mm256_cvtepi32_ps(b)]
        }

        #[inline(always)]
        fn load(self, lanes: &Lanes) -> [__m256; 2] {
            cast(*lanes)
        }

        #[inline(always)]
        fn quarters(self, [a, b, c, d]: [f32; 4]) -> [__m256; 2] {
            let V3 { avx, sse, .. } = self.0;
            let (a, b) = (sse._mm_set1_ps(a), sse._mm_set1_ps(b));
            let (c, d) = (sse._mm_set1_ps(c), sse._mm_set1_ps(d));
            [avx._mm256_set_m128(b, a), avx._mm256_set_m128(d, c)]
        }

        #[inline(always)]
        fn minus(self, a: [__m256; 2], b: [__m256; 2]) -> [__m256; 2] {
            let avx = self.0.avx;
            [avx._mm256_sub_ps(a[0], b[0]), avx._mm256_sub_ps(a[1], b[1])]
        }

        #[inline(always)]
        fn multiply_add(self, a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
            let fma = self.0.fma;
            [
                fma._mm256_fmadd_ps(a[0], b[0], c[0]),
                fma._mm256_fmadd_ps(a[1], b[1], c[1]),
            ]
        }

        #[inline(always)]
        fn sum(self, a: [__m256; 2]) -> f32 {
            halved(cast(a))
        }
    }
}
