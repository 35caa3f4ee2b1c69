//! Writing of the elements of a [`Tensor`]: in place if nobody shares them, else in a copy.

use tfrt_host::Error;
use tfrt_tensor::{DenseHostTensor, Element, Tensor as Layered};

use super::{OwnedWriting, Tensor, allocator, not_numbers};

impl Tensor {
    /// Lends the elements for writing, in row-major order. If others share them, or their memory is for reading only, this
    /// tensor gets a copy of its own first.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s; `FailedPrecondition` if a kernel is writing them; `ResourceExhausted` if there
    /// is no memory for a copy.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Tensor;
    ///
    /// let mut x = Tensor::from_slice(&[2], &[1, 2])?;
    /// let before = x.clone();
    /// x.make_mut::<i32>()?[0] = 7;
    /// assert_eq!((x.to_vec::<i32>()?, before.to_vec::<i32>()?), (vec![7, 2], vec![1, 2]));
    /// # Ok::<(), tfrt::Error>(())
    /// ```
    pub fn make_mut<T: Element>(&mut self) -> Result<&mut [T], Error> {
        self.metadata().expect_dtype(T::DTYPE)?;
        let elements = self.sole()?.elements_mut()?;
        Ok(elements.expect("nobody else has it"))
    }

    /// Lends the elements for writing where they are; `None` if others share them, or if their memory is for reading only,
    /// as that of a vector or another owner is.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if they are no `T`s.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt::Tensor;
    ///
    /// let mut x = Tensor::from_slice(&[2], &[1, 2])?;
    /// x.get_mut::<i32>()?.expect("nobody shares it")[0] = 7;
    /// let other = x.clone();
    /// assert!(x.get_mut::<i32>()?.is_none());
    /// # drop(other);
    /// # Ok::<(), tfrt::Error>(())
    /// ```
    pub fn get_mut<T: Element>(&mut self) -> Result<Option<&mut [T]>, Error> {
        self.metadata().expect_dtype(T::DTYPE)?;
        match &mut self.0 {
            Layered::Dense(dense) => match dense.is_sole() {
                true => dense.elements_mut(),
                false => Ok(None),
            },
            other => Err(not_numbers(other)),
        }
    }

    /// Takes the right to write the elements, and them with it: where they are if nobody shares them, such as an output
    /// that was [taken](crate::model::Outputs::take); else, or if their memory is for reading only, those of a copy.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is a tensor of strings; `FailedPrecondition` if a kernel is writing it; `ResourceExhausted`
    /// if there is no memory for a copy.
    pub fn write_owned(mut self) -> Result<OwnedWriting, Error> {
        self.sole()?;
        match self.0 {
            Layered::Dense(dense) => OwnedWriting::new(dense),
            other => Err(not_numbers(&other)),
        }
    }

    /// Copies the elements of a tensor of the same type and shape to the memory of this one; to new memory if others share
    /// it, or if it is for reading only.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is of another type or shape; `FailedPrecondition` if a kernel is writing it;
    /// `ResourceExhausted` if there is no memory for a copy.
    pub fn copy_from(&mut self, other: &Tensor) -> Result<(), Error> {
        if self.metadata() != other.metadata() {
            let (own, found) = (self.metadata(), other.metadata());
            let message = format!("a tensor of {own} can't take the elements of one of {found}");
            return Err(Error::invalid_argument(message));
        }
        if let (Layered::Dense(own), Layered::Dense(other)) = (&mut self.0, &other.0) {
            if own.is_sole() {
                return own.copy_from(other);
            }
            *own = other.deep_copy(allocator())?;
            return Ok(());
        }
        self.0 = other.0.clone();
        Ok(())
    }

    /// Returns the dense tensor behind this one, which nobody else shares: a copy if somebody does.
    fn sole(&mut self) -> Result<&mut DenseHostTensor, Error> {
        let dense = match &mut self.0 {
            Layered::Dense(dense) => dense,
            other => return Err(not_numbers(other)),
        };
        if !dense.is_sole() {
            *dense = dense.deep_copy(allocator())?;
        }
        Ok(dense)
    }
}
