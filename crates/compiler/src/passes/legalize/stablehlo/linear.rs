//! Transforms and decompositions, and the calls of LAPACK that JAX writes for them.

use tfrt_ir::{Attribute, OpId, Type, ValueId};

use super::build::int;
use super::control::{flattened, unflattened};
use super::shapes::known_dims;
use super::sizes::Size;
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.cholesky", cholesky),
    ("stablehlo.fft", fft),
    ("stablehlo.triangular_solve", triangular_solve),
];

/// Calls of LAPACK.
pub(super) const CALLS: &[(&str, LowerFn)] = &[
    ("lapack_cpotrf_ffi", potrf),
    ("lapack_ctrsm_ffi", trsm),
    ("lapack_dgetrf_ffi", getrf),
    ("lapack_dpotrf_ffi", potrf),
    ("lapack_dtrsm_ffi", trsm),
    ("lapack_sgetrf_ffi", getrf),
    ("lapack_spotrf_ffi", potrf),
    ("lapack_strsm_ffi", trsm),
    ("lapack_zpotrf_ffi", potrf),
    ("lapack_ztrsm_ffi", trsm),
];

impl Lowering<'_> {
    /// Exchanges the last two dimensions.
    pub(super) fn flipped(&mut self, x: ValueId) -> ValueId {
        let rank = self.rank(x);
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        self.transposed(x, &order)
    }

    /// Returns where elements of matrices are in the lower triangle.
    fn triangle(&mut self, x: ValueId, lower: bool) -> ValueId {
        let dims = self.dims(x);
        let size = dims[dims.len() - 2..].to_vec();
        let (rows, columns) = (
            self.counted(&size, 0, &Type::I64),
            self.counted(&size, 1, &Type::I64),
        );
        self.compare(if lower { "ge" } else { "le" }, rows, columns)
    }

    fn factor(&mut self, x: ValueId, lower: bool) -> ValueId {
        let (dims, element) = (self.dims(x), self.element(x));
        let x = if lower { x } else { self.flipped(x) };
        let made = self.add("tf.Cholesky", &[x], &[], &dims, &element);
        if lower { made } else { self.flipped(made) }
    }

    /// Returns the triangular factor of an operation's first operand.
    fn factor_of(&mut self, op: OpId, lower: bool) -> Result<Bound, String> {
        Ok(match self.bound(op, 0)? {
            Bound::Complex(real, imaginary) => {
                self.as_matrices(real)?;
                let (real, imaginary) = self.hermitian_factor((real, imaginary), lower);
                Bound::Complex(real, imaginary)
            }
            _ => {
                let x = self.matrices(op, 0)?;
                Bound::Tensor(self.factor(x, lower))
            }
        })
    }

    fn solved(&mut self, a: ValueId, b: ValueId, flags: [bool; 4]) -> ValueId {
        let (dims, element) = (self.dims(b), self.element(b));
        let names = ["left", "lower", "transpose", "unit"];
        let attributes: Vec<(&str, Attribute)> = names
            .into_iter()
            .zip(flags)
            .map(|(name, flag)| (name, int(i64::from(flag))))
            .collect();
        self.add(
            "stablehlo.triangular_solve",
            &[a, b],
            &attributes,
            &dims,
            &element,
        )
    }

    /// Solves the triangular systems that an operation's operands are, of real or of complex numbers.
    fn solution(&mut self, op: OpId, flags: [bool; 4], conjugates: bool) -> Result<Bound, String> {
        Ok(match (self.bound(op, 0)?, self.bound(op, 1)?) {
            (Bound::Complex(real, imaginary), Bound::Complex(b_real, b_imaginary)) => {
                for part in [real, b_real] {
                    self.as_matrices(part)?;
                }
                let imaginary = match conjugates {
                    true => self.unary("neg", imaginary),
                    false => imaginary,
                };
                let (a, b) = (
                    self.joined(real, imaginary),
                    self.joined(b_real, b_imaginary),
                );
                let made = self.solved(a, b, flags);
                self.parts(made)
            }
            _ => {
                let (a, b) = (self.matrices(op, 0)?, self.matrices(op, 1)?);
                Bound::Tensor(self.solved(a, b, flags))
            }
        })
    }

    /// Checks that an operand is a batch of matrices.
    fn matrices(&self, op: OpId, index: usize) -> Result<ValueId, String> {
        let x = self.operand(op, index)?;
        self.as_matrices(x)
    }

    /// Checks that a tensor is a batch of matrices of known extents.
    fn as_matrices(&self, x: ValueId) -> Result<ValueId, String> {
        match self.dims(x)[..] {
            [.., rows, columns] => known_dims(&[rows, columns]).map(|()| x),
            _ => Err("expected matrices".to_owned()),
        }
    }

    /// Returns zeros of the type of a result, one for each matrix: LAPACK's code for success.
    fn success(&mut self, op: OpId, index: usize, x: ValueId) -> Result<Bound, String> {
        let (_, element) = self.stated(op, index)?;
        let zero = self.number(&element, 0.0);
        let sizes = self.sizes(x);
        let batch = &sizes[..sizes.len() - 2];
        Ok(Bound::Tensor(self.widened(zero, batch)))
    }

    /// Returns a letter that a call of LAPACK is given in its configuration.
    fn letter(&self, op: OpId, name: &str) -> char {
        let config = match self.attribute(op, "mhlo.backend_config") {
            Some(Attribute::Dictionary(config)) => Some(config),
            _ => match self.attribute(op, "backend_config") {
                Some(Attribute::Dictionary(config)) => Some(config),
                _ => None,
            },
        };
        let value = config
            .and_then(|config| config.get(name))
            .and_then(Attribute::as_i64);
        let letter = value.and_then(|value| u8::try_from(value).ok());
        letter.map_or(' ', char::from)
    }
}

fn cholesky(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let lower = l.flag(op, "lower");
    // The other triangle is left to the implementation: that of the operand is none of it.
    l.factor_of(op, lower).map(|factor| vec![factor])
}

fn triangular_solve(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let transpose = l.word(op, "transpose_a").to_owned();
    let flags = [
        l.flag(op, "left_side"),
        l.flag(op, "lower"),
        matches!(transpose.as_str(), "TRANSPOSE" | "ADJOINT"),
        l.flag(op, "unit_diagonal"),
    ];
    Ok(vec![l.solution(op, flags, transpose == "ADJOINT")?])
}

fn getrf(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let x = l.matrices(op, 0)?;
    let (dims, element) = (l.dims(x), l.element(x));
    let (batch, size) = dims.split_at(dims.len() - 2);
    let with = |n: i64| -> Type { Type::tensor([batch, &[n]].concat(), Type::I32) };
    let types = vec![
        Type::tensor(dims.clone(), element),
        with(size[0].min(size[1])),
        with(size[0]),
    ];
    let made = l.add_all("stablehlo.lu", &[x], &[], types);
    // LAPACK counts rows from 1.
    let pivots = l.with_number("add", made[1], 1.0);
    let info = l.success(op, 2, x)?;
    Ok(vec![Bound::Tensor(made[0]), Bound::Tensor(pivots), info])
}

fn potrf(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let lower = l.letter(op, "uplo") != 'U';
    let factor = l.factor_of(op, lower)?;
    // The other triangle stays as it was, and a matrix without a factor is told by its code.
    let operand = [l.bound(op, 0)?];
    let factor = [factor];
    let (factors, parts) = (flattened(&factor), flattened(&operand));
    let inside = l.triangle(factors[0], lower);
    let made = factors.iter().zip(parts);
    let made = made
        .map(|(factor, x)| l.select(inside, *factor, x))
        .collect();
    let (_, element) = l.stated(op, 1)?;
    let none = l.pointwise("is_nan", &[factors[0]], &[], &Type::I1);
    let rank = l.rank(factors[0]);
    let any = l
        .reduced(super::reduce::Kind::Or, none, &[rank - 2, rank - 1])
        .ok_or("reduces nothing")?;
    let code = Bound::Tensor(l.cast(any, &element));
    let mut results = unflattened(&factor, made)?;
    results.push(code);
    Ok(results)
}

fn trsm(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let transposition = l.letter(op, "trans_x");
    let flags = [
        l.letter(op, "side") != 'R',
        l.letter(op, "uplo") != 'U',
        !matches!(transposition, 'N' | ' '),
        l.letter(op, "diag") == 'U',
    ];
    Ok(vec![l.solution(op, flags, transposition == 'C')?])
}

fn fft(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let kind = l.word(op, "fft_type").to_owned();
    let lengths = l.ints(op, "fft_length")?;
    let value = l.bound(op, 0)?;
    let (mut real, imaginary) = match value {
        Bound::Tensor(x) => (x, None),
        Bound::Complex(real, imaginary) => (real, Some(imaginary)),
        _ => return Err("expected a tensor".to_owned()),
    };
    let rank = l.rank(real);
    if lengths.is_empty() || lengths.len() > rank {
        return Err(format!("transforms {} dimensions of {rank}", lengths.len()));
    }
    known_dims(&l.dims(real)[rank - lengths.len()..])?;
    let first = rank - lengths.len();
    let element = l.element(real);
    let last = *lengths.last().unwrap_or(&1);
    let inverse = matches!(kind.as_str(), "IFFT" | "IRFFT");
    if !matches!(kind.as_str(), "FFT" | "IFFT" | "RFFT" | "IRFFT") {
        return Err(format!(
            "attribute 'fft_type': expected FFT, IFFT, RFFT or IRFFT, found '{kind}'"
        ));
    }
    if imaginary.is_some() == (kind == "RFFT") {
        return Err(format!("takes numbers of {element} parts for {kind}"));
    }
    let mut imaginary = match imaginary {
        Some(imaginary) => imaginary,
        None => {
            let zero = l.number(&element, 0.0);
            l.widened_like(zero, real)
        }
    };
    if l.dims(real).contains(&0) || lengths.contains(&0) {
        let (dims, _) = l.stated(op, 0)?;
        let zero = l.number(&element, 0.0);
        let zero = l.broadcast_to(zero, &dims);
        return Ok(vec![if kind == "IRFFT" {
            Bound::Tensor(zero)
        } else {
            Bound::Complex(zero, zero)
        }]);
    }
    let mut axes: Vec<usize> = (first..rank).collect();
    if inverse {
        // The last one gives real numbers, when all others are done.
        if kind == "IRFFT" {
            for axis in first..rank - 1 {
                (real, imaginary) = l.transformed(real, imaginary, axis, true);
            }
            (real, imaginary) = l.completed(real, imaginary, last);
            axes = vec![rank - 1];
        }
    }
    for axis in axes {
        (real, imaginary) = l.transformed(real, imaginary, axis, inverse);
    }
    Ok(vec![match kind.as_str() {
        "IRFFT" => Bound::Tensor(real),
        "RFFT" => {
            // The other half has the conjugates of this one.
            let [real, imaginary] =
                [real, imaginary].map(|part| l.part(part, rank - 1, 0, last / 2 + 1, 1));
            Bound::Complex(real, imaginary)
        }
        _ => Bound::Complex(real, imaginary),
    }])
}

impl Lowering<'_> {
    /// Transforms along one dimension.
    fn transformed(
        &mut self,
        real: ValueId,
        imaginary: ValueId,
        axis: usize,
        inverse: bool,
    ) -> (ValueId, ValueId) {
        let (sizes, element) = (self.sizes(real), self.element(real));
        let rank = sizes.len();
        let wide = [&sizes[..], &[Size::Known(1)]].concat();
        let [first, second] = [real, imaginary].map(|part| self.resized(part, &wide));
        let both = self.concatenated(&[first, second], rank);
        let length = self.size_number(sizes[axis]);
        let place = self.integers_of(&[], &[i64::try_from(axis).unwrap_or(0)]);
        let attributes = [("inverse", int(i64::from(inverse)))];
        let extents = self.dims(both);
        let made = self.add(
            "onnx.DFT",
            &[both, length, place],
            &attributes,
            &extents,
            &element,
        );
        let parts = [0, 1].map(|part| {
            let part = self.part(made, rank, part, part + 1, 1);
            self.resized(part, &sizes)
        });
        (parts[0], parts[1])
    }

    /// Completes the first half of a transform of real numbers by the conjugates of its elements, in the opposite order.
    fn completed(&mut self, real: ValueId, imaginary: ValueId, length: i64) -> (ValueId, ValueId) {
        let axis = self.rank(real) - 1;
        let half = length / 2 + 1;
        let [real, imaginary] = [real, imaginary].map(|part| self.part(part, axis, 0, half, 1));
        let rest = length - half;
        if rest == 0 {
            return (real, imaginary);
        }
        let last = i64::try_from(axis).unwrap_or(0);
        let other = [real, imaginary].map(|part| {
            let inner = self.part(part, axis, 1, 1 + rest, 1);
            self.reversed(inner, &[last])
        });
        let conjugate = self.unary("neg", other[1]);
        (
            self.concatenated(&[real, other[0]], axis),
            self.concatenated(&[imaginary, conjugate], axis),
        )
    }
}
