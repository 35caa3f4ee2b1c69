//! Factors of Hermitian matrices, by those of real ones.
//!
//! A complex number stands for a real matrix of two rows, `[[real, -imaginary], [imaginary, real]]`: sums and products are
//! those of the matrices, and the conjugate is the transposition. So the factor of a matrix of these is made of those of the
//! numbers of the factor; and as real factors with positive diagonals are unique, it is the one that is found.

use tfrt_ir::{Type, ValueId};

use super::Lowering;
use super::elements::Pair;
use super::sizes::Size;

impl Lowering<'_> {
    /// Returns the triangular factor of Hermitian matrices, of which one triangle is read.
    pub(super) fn hermitian_factor(&mut self, x: Pair, lower: bool) -> Pair {
        let (real, imaginary) = if lower { x } else { self.adjoint(x) };
        let element = self.element(real);
        let zero = self.number(&element, 0.0);
        // Numbers on the diagonal are real, whatever the operand and rounding say.
        let diagonal = self.diagonal(real);
        let imaginary = self.select(diagonal, zero, imaginary);
        let matrix = self.matrix_of((real, imaginary));
        let dims = self.dims(matrix);
        let factor = self.add("tf.Cholesky", &[matrix], &[], &dims, &element);
        let (real, imaginary) = self.numbers_of(factor);
        let imaginary = self.select(diagonal, zero, imaginary);
        if lower {
            (real, imaginary)
        } else {
            self.adjoint((real, imaginary))
        }
    }

    fn adjoint(&mut self, (real, imaginary): Pair) -> Pair {
        let [real, imaginary] = [real, imaginary].map(|part| self.flipped(part));
        (real, self.unary("neg", imaginary))
    }

    /// Returns where elements of matrices are on the diagonal.
    fn diagonal(&mut self, x: ValueId) -> ValueId {
        let dims = self.dims(x);
        let size = dims[dims.len() - 2..].to_vec();
        let [rows, columns] = [0, 1].map(|axis| self.counted(&size, axis, &Type::I64));
        self.compare("eq", rows, columns)
    }

    /// Makes real matrices of complex ones, of twice as many rows and columns.
    fn matrix_of(&mut self, (real, imaginary): Pair) -> ValueId {
        let negative = self.unary("neg", imaginary);
        let axis = self.rank(real) - 2;
        let upper = self.interleaved([real, negative], axis + 1);
        let below = self.interleaved([imaginary, real], axis + 1);
        self.interleaved([upper, below], axis)
    }

    /// Puts elements of two tensors behind one another in turn, along a dimension of known extent.
    fn interleaved(&mut self, pair: [ValueId; 2], axis: usize) -> ValueId {
        let mut sizes = self.sizes(pair[0]);
        let n = self.dims(pair[0])[axis];
        let mut apart = sizes.clone();
        apart.insert(axis + 1, Size::Known(1));
        let pair = pair.map(|part| self.resized(part, &apart));
        let both = self.concatenated(&pair, axis + 1);
        sizes[axis] = Size::Known(2 * n);
        self.resized(both, &sizes)
    }

    /// Returns the complex numbers that a real matrix is made of.
    fn numbers_of(&mut self, matrix: ValueId) -> Pair {
        let dims = self.dims(matrix);
        let (rows, columns) = (dims.len() - 2, dims.len() - 1);
        let left = self.part(matrix, columns, 0, dims[columns], 2);
        let [real, imaginary] = [0, 1].map(|start| self.part(left, rows, start, dims[rows], 2));
        (real, imaginary)
    }
}
