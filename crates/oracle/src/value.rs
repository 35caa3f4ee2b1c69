//! Values of the evaluator: a datum, or the failure in its place.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// A value of a program, or the failure in its place.
pub type Value = Result<Datum, Rc<Failure>>;

/// An error that flows through a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the canonical code: `Unknown`, `InvalidArgument`, `Cancelled`.
    pub code: &'static str,
    /// The message, printed between `<<error: ` and `>>`.
    pub message: String,
}

/// A value that is there.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each is named after its MLIR type")]
pub enum Datum {
    Chain,
    I1(bool),
    I32(i32),
    I64(i64),
    U32(u32),
    U64(u64),
    F16(u16),
    BF16(u16),
    F32(f32),
    F64(f64),
    Complex64(f32, f32),
    Complex128(f64, f64),
    String(Rc<str>),
    /// `!test.atomic.i32`: a counter, shared by all who hold it.
    Atomic(Rc<Cell<i32>>),
    /// `!tfrt.test.resource`: a resource that prints a line when its last holder lets go of it.
    Resource(Rc<Resource>),
    /// `!my.coordinate` of the tutorial.
    Coordinate(i32, i32),
}

/// The text printed so far, shared with values that print when dropped.
pub(crate) type PrintedText = Rc<RefCell<String>>;

/// Adds a line to what was printed.
pub(crate) fn print_line(printed: &PrintedText, line: &str) {
    let mut text = printed.borrow_mut();
    text.push_str(line);
    text.push('\n');
}

/// The resource of the tests of lifetimes.
#[derive(Debug)]
pub struct Resource {
    printed: PrintedText,
}

impl Resource {
    pub(crate) fn allocate(printed: &PrintedText) -> Rc<Resource> {
        print_line(printed, "Allocated TestResource");
        Rc::new(Resource {
            printed: printed.clone(),
        })
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        print_line(&self.printed, "Destroyed TestResource");
    }
}
