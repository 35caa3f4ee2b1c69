//! [`Cells`]: strings as plugins see them, cells of 24 bytes each (`TF_TString`).
//!
//! The headers of the C API read and write cells inline, so that their form is fixed. The two low bits of the first byte
//! say what a cell is: 0, a short string in the cell; 1, a long one in memory of `malloc`; 2, one at an offset from the
//! cell; 3, a view of bytes that somebody else keeps. A cell of zeros is an empty string.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use tfrt_tensor::StringHostTensor;

use crate::dtype::STRING_BYTES;
use crate::raw::Memory;

const ALIGNMENT: usize = 64;
const LARGE: u64 = 1;
const OFFSET: u64 = 2;
const VIEW: u64 = 3;

type Cell = [u64; 3];

/// An array of cells, which owns what they hold.
pub struct Cells {
    // Invariant: `n` cells in a block of `layout()`.
    start: NonNull<Cell>,
    n: usize,
    /// Strings that views lead to.
    viewed: Option<StringHostTensor>,
}

// SAFETY: the cells are this value's own; a plugin that writes them from several threads orders that itself.
unsafe impl Send for Cells {}
// SAFETY: as above.
unsafe impl Sync for Cells {}

impl Cells {
    /// Makes so many empty strings.
    pub fn new(n: usize) -> Cells {
        let start = match n {
            0 => NonNull::dangling(),
            // SAFETY: the layout is not empty.
            _ => NonNull::new(unsafe { alloc_zeroed(layout(n)) }.cast())
                .unwrap_or_else(|| handle_alloc_error(layout(n))),
        };
        Cells {
            start,
            n,
            viewed: None,
        }
    }

    /// Makes cells that view the strings of a tensor.
    pub fn viewing(strings: StringHostTensor) -> Cells {
        let mut cells = Cells::new(strings.strings().len());
        for (index, string) in strings.strings().iter().enumerate() {
            let cell = [(string.len() as u64) << 2 | VIEW, string.as_ptr() as u64, 0];
            // SAFETY: there are as many cells as strings.
            let place = unsafe { cells.start.add(index) };
            // SAFETY: as above.
            unsafe { place.write(cell) };
        }
        cells.viewed = Some(strings);
        cells
    }

    /// Returns the address of the first cell.
    pub fn memory(&self) -> Memory {
        Memory::at(self.start.cast())
    }

    /// Returns the number of cells.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns the strings of the cells, as they are now.
    pub fn to_strings(&self) -> Vec<Vec<u8>> {
        (0..self.n).map(|index| self.string(index)).collect()
    }

    fn string(&self, index: usize) -> Vec<u8> {
        // SAFETY: callers have an index below `n`.
        let place = unsafe { self.start.add(index) };
        // SAFETY: the cell is initialised; plugins write whole cells.
        let [first, second, third] = unsafe { place.read() };
        let (len, at) = match first & 3 {
            LARGE => (first >> 2, third as *const u8),
            VIEW => (first >> 2, second as *const u8),
            OFFSET => {
                let offset = (first >> 32) as u32;
                let start = place.as_ptr().cast::<u8>();
                (
                    u64::from(first as u32 >> 2),
                    start.wrapping_add(offset as usize).cast_const(),
                )
            }
            _ => {
                let len = (first & 0xff) >> 2;
                (
                    len,
                    place.as_ptr().cast::<u8>().wrapping_add(1).cast_const(),
                )
            }
        };
        let len = usize::try_from(len).unwrap_or(0);
        if len == 0 || at.is_null() {
            return Vec::new();
        }
        // SAFETY: a cell of this kind leads to as many bytes, which the plugin, a viewed tensor or the cell keeps.
        unsafe { std::slice::from_raw_parts(at, len) }.to_vec()
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        for index in 0..self.n {
            // SAFETY: the index is below `n`.
            let place = unsafe { self.start.add(index) };
            // SAFETY: the cell is initialised.
            let [first, _, third] = unsafe { place.read() };
            if first & 3 == LARGE {
                // SAFETY: headers take the memory of long strings from `malloc`, and the cell owns it.
                unsafe { libc::free(third as *mut libc::c_void) };
            }
        }
        if self.n > 0 {
            // SAFETY: the block is of this layout.
            unsafe { dealloc(self.start.as_ptr().cast(), layout(self.n)) };
        }
    }
}

fn layout(n: usize) -> Layout {
    Layout::from_size_align(n * STRING_BYTES, ALIGNMENT).expect("callers bound the number of cells")
}

const _: () = assert!(size_of::<Cell>() == STRING_BYTES);

#[cfg(test)]
mod tests {
    use tfrt_tensor::TensorShape;

    use super::*;

    #[test]
    fn cells_of_all_kinds_are_read() {
        let strings = vec![b"abc".to_vec(), Vec::new(), vec![b'x'; 100]];
        let shape = TensorShape::new(&[3]).unwrap();
        let tensor = StringHostTensor::new(shape, strings.clone()).unwrap();
        assert_eq!(Cells::viewing(tensor).to_strings(), strings);
        let cells = Cells::new(2);
        assert_eq!(cells.to_strings(), [Vec::<u8>::new(), Vec::new()]);
        let short = u64::from_le_bytes([2 << 2, b'h', b'i', 0, 0, 0, 0, 0]);
        // SAFETY: malloc may be called with any size.
        let long = unsafe { libc::malloc(30) }.cast::<u8>();
        for at in 0..30 {
            // SAFETY: the block has 30 bytes.
            unsafe { long.wrapping_add(at).write(b'l') };
        }
        // SAFETY: there are two cells.
        unsafe { cells.start.write([short, 0, 0]) };
        let second = cells.start.as_ptr().wrapping_add(1);
        // SAFETY: as above.
        unsafe { second.write([30 << 2 | LARGE, 30, long as u64]) };
        assert_eq!(cells.to_strings(), [b"hi".to_vec(), vec![b'l'; 30]]);
    }
}
