//! Arguments of the C API that are real memory: texts, arrays, and places for results.
//!
//! Values of these types are made by a plugin's call alone: they are its arguments, passed as pointers. The C headers
//! make the plugin promise that each pointer is null, or leads to what the function says it does, for the time of the
//! call. So reading through one is as safe as the plugin is, which is trusted like any library that is linked. Null
//! pointers are found here.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;

use crate::fault;
use crate::guard::Callback;

/// A text that ends in a zero byte: `const char*`.
#[repr(transparent)]
pub struct Text(Option<NonNull<c_char>>);

impl Text {
    /// Returns the bytes of the text. Records a fault for a null pointer.
    pub fn bytes(&self, argument: &str) -> Option<&[u8]> {
        let found = self.bytes_or_null();
        if found.is_none() {
            fault::argument(argument, "expected a text, found a null pointer");
        }
        found
    }

    /// Returns the bytes of the text; `None` for a null pointer.
    pub fn bytes_or_null(&self) -> Option<&[u8]> {
        // SAFETY: an argument of the C API that is not null is a text that ends in a zero byte.
        let text = unsafe { CStr::from_ptr(self.0?.as_ptr()) };
        Some(text.to_bytes())
    }

    /// Returns the text, with odd bytes replaced. Records a fault for a null pointer.
    pub fn text(&self, argument: &str) -> Option<String> {
        let bytes = self.bytes(argument)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

/// An array that a plugin hands over: `const T*`. Its length is another argument.
#[repr(transparent)]
pub struct Array<T>(Option<NonNull<T>>);

impl<T: Copy> Array<T> {
    /// Returns a copy of the first `n` elements. Records a fault for a null pointer, unless there are none, and for a
    /// negative number.
    pub fn read(&self, n: i64, argument: &str) -> Option<Vec<T>> {
        Some(self.first(n, argument)?.to_vec())
    }

    /// Returns the first `n` elements, for the time of the call. Records a fault as [`read`](Self::read) does.
    #[inline]
    pub fn first(&self, n: i64, argument: &str) -> Option<&[T]> {
        self.slice(length(n, argument)?, argument)
    }

    /// Returns the address.
    pub fn address(&self) -> usize {
        self.0.map_or(0, |start| start.addr().get())
    }

    /// Returns the first `n` elements, for the time of the call. Records a fault for a null pointer, unless there are none,
    /// and for more than can be.
    #[inline]
    pub fn slice(&self, n: usize, argument: &str) -> Option<&[T]> {
        let is_possible = n.checked_mul(size_of::<T>());
        if is_possible.is_none_or(|len| len > isize::MAX as usize) {
            fault::argument(argument, &format!("expected a length, found {n}"));
            return None;
        }
        match self.0 {
            _ if n == 0 => Some(&[]),
            // SAFETY: an array argument of the C API has as many elements as the call says.
            Some(start) => Some(unsafe { NonNull::slice_from_raw_parts(start, n).as_ref() }),
            None => {
                fault::argument(argument, "expected an array, found a null pointer");
                None
            }
        }
    }
}

/// The most elements of arrays that calls hand over.
const MAX_ELEMENTS: usize = 1 << 24;

#[inline]
fn length(n: i64, argument: &str) -> Option<usize> {
    match usize::try_from(n).ok().filter(|n| *n <= MAX_ELEMENTS) {
        Some(n) => Some(n),
        None => {
            fault::argument(argument, &format!("expected a length, found {n}"));
            None
        }
    }
}

/// A place where a plugin wants results: `T*`.
#[repr(transparent)]
pub struct Out<T>(Option<NonNull<T>>);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Returns a place that a plugin has named otherwise.
    pub fn at(place: Option<NonNull<T>>) -> Out<T> {
        Out(place)
    }

    /// Returns whether this is a null pointer.
    pub fn is_null(self) -> bool {
        self.0.is_none()
    }

    /// Writes a result. Records a fault for a null pointer.
    pub fn set(self, value: T, argument: &str) -> bool {
        if self.0.is_none() {
            fault::argument(
                argument,
                "expected a place for the result, found a null pointer",
            );
        }
        self.set_if(value)
    }

    /// Writes a result, unless nobody wants it.
    pub fn set_if(self, value: T) -> bool {
        match self.0 {
            Some(place) => {
                // SAFETY: a place for a result is memory of its type, which may be uninitialised.
                unsafe { place.write(value) };
                true
            }
            None => false,
        }
    }

    /// Writes the first results, at most `most`. Records a fault for a null pointer, unless there are none, and for a
    /// negative number.
    pub fn set_all(self, values: impl IntoIterator<Item = T>, most: i64, argument: &str) -> bool {
        let Some(most) = length(most, argument) else {
            return false;
        };
        for (at, value) in values.into_iter().take(most).enumerate() {
            let Some(start) = self.0 else {
                fault::argument(argument, "expected an array, found a null pointer");
                return false;
            };
            // SAFETY: the array has room for as many as the call says.
            let place = unsafe { start.add(at) };
            // SAFETY: as above; the memory may be uninitialised.
            unsafe { place.write(value) };
        }
        true
    }
}

impl<T: Copy> Out<T> {
    /// Reads what the plugin has put there. Records a fault for a null pointer.
    pub fn get(self, argument: &str) -> Option<T> {
        match self.0 {
            // SAFETY: the function says that the plugin fills this before the call.
            Some(place) => Some(unsafe { place.read() }),
            None => {
                fault::argument(argument, "expected a structure, found a null pointer");
                None
            }
        }
    }
}

/// Memory without a type: `void*`.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
pub struct Memory(Option<NonNull<u8>>);

// SAFETY: an address; who uses it says why that is sound.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Returns the memory at an address that the host has given out.
    pub fn at(start: NonNull<u8>) -> Memory {
        Memory(Some(start))
    }

    /// Returns the address as a number, from which [`of_exposed`](Self::of_exposed) makes the memory again.
    #[inline]
    pub fn expose(self) -> usize {
        self.0.map_or(0, |start| start.as_ptr().expose_provenance())
    }

    /// Returns the memory at an address that was [exposed](Self::expose).
    #[inline]
    pub fn of_exposed(address: usize) -> Memory {
        Memory::of_plugin(address)
    }

    /// Returns the memory at an address that a plugin has given.
    #[inline]
    pub fn of_plugin(address: usize) -> Memory {
        Memory(NonNull::new(std::ptr::with_exposed_provenance_mut(address)))
    }

    /// Returns the address; 0 for a null pointer.
    #[inline]
    pub fn address(self) -> usize {
        self.0.map_or(0, |start| start.addr().get())
    }

    /// Returns the bytes that the plugin says are here. Records a fault for a null pointer, unless there are none.
    pub fn bytes(&self, n: usize, argument: &str) -> Option<&[u8]> {
        match self.0 {
            _ if n == 0 => Some(&[]),
            // SAFETY: the call says that so many bytes are here; they stay for its time.
            Some(start) => Some(unsafe { NonNull::slice_from_raw_parts(start, n).as_ref() }),
            None => {
                fault::argument(argument, "expected memory, found a null pointer");
                None
            }
        }
    }

    /// Writes bytes at an offset. Records a fault for a null pointer.
    pub fn write(self, offset: usize, bytes: &[u8], argument: &str) -> bool {
        let Some(start) = self.0 else {
            fault::argument(argument, "expected memory, found a null pointer");
            return false;
        };
        // SAFETY: the call says that there is room for offset and bytes; the host's bytes are its own.
        let start = unsafe { start.add(offset) };
        // SAFETY: as above.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        true
    }
}

/// A text of known length: `TF_StringView`, which is returned by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StringView {
    data: *const c_char,
    len: usize,
}

impl Default for StringView {
    fn default() -> Self {
        StringView {
            data: c"".as_ptr(),
            len: 0,
        }
    }
}

impl StringView {
    /// Returns the bytes that a plugin's view leads to. Records a fault for a null pointer, unless there are none.
    pub fn bytes(&self, argument: &str) -> Option<&[u8]> {
        let Some(start) = NonNull::new(self.data.cast_mut().cast::<u8>()) else {
            if self.len > 0 {
                fault::argument(argument, "expected a text, found a null pointer");
                return None;
            }
            return Some(&[]);
        };
        // SAFETY: a view that is an argument of the C API leads to as many bytes, which stay for the call.
        Some(unsafe { NonNull::slice_from_raw_parts(start, self.len).as_ref() })
    }

    /// Returns a view of bytes that the host keeps for as long as the plugin may read them.
    pub fn of(kept: &[u8]) -> StringView {
        StringView {
            data: kept.as_ptr().cast(),
            len: kept.len(),
        }
    }
}

/// Structure `TF_Buffer`: bytes, and the function that frees them.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Buffer {
    /// The bytes.
    pub data: Memory,
    /// Their number.
    pub len_bytes: usize,
    /// The function that frees them, called with both; null for none.
    pub deallocator: Callback,
}

/// Structure `TF_InputRange_Args`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InputRange {
    /// Size of the structure, as the plugin was built.
    pub struct_size: usize,
    /// Not used.
    pub private: *mut c_void,
    /// The first input.
    pub start: i32,
    /// The input behind the last one.
    pub stop: i32,
    /// A status.
    pub status: crate::handle::Handle<crate::functions::status::Status>,
}

/// Structure `TF_AllocatorAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocatorAttributes {
    /// Size of the structure, as the plugin was built.
    pub struct_size: usize,
    /// Whether the memory is the host's.
    pub on_host: u8,
}

/// Structure `TF_RendezvousThunk`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rendezvous {
    rendezvous: *mut c_void,
    functions: [*const c_void; 3],
}

impl Default for Rendezvous {
    fn default() -> Self {
        Rendezvous {
            rendezvous: std::ptr::null_mut(),
            functions: [std::ptr::null(); 3],
        }
    }
}

/// Structure `TF_FileStatistics`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FileStatistics {
    /// Number of bytes.
    pub length: i64,
    /// Time of the last change, in nanoseconds since 1970.
    pub mtime_nsec: i64,
    /// Whether it is a folder.
    pub is_directory: u8,
}

/// Structure `TF_ThreadOptions`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadOptions {
    /// Bytes of the stack; 0 for the system's own number.
    pub stack_size: usize,
    /// Bytes behind the stack that no thread may touch; the system decides.
    pub guard_size: usize,
    /// Part of the machine that the thread should run on; -1 for any. Not looked at.
    pub numa_node: c_int,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        ThreadOptions {
            stack_size: 0,
            guard_size: 0,
            numa_node: -1,
        }
    }
}

/// A text of the host: `const char*`, which stays for as long as the function says.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct HostText(*const c_char);

impl Default for HostText {
    fn default() -> Self {
        HostText(c"".as_ptr())
    }
}

impl HostText {
    /// A null pointer.
    pub const NULL: HostText = HostText(std::ptr::null());

    /// Returns a copy of a text that the plugin frees by the C library's `free`.
    pub fn given(text: &CStr) -> HostText {
        // SAFETY: the text ends in a zero byte.
        HostText(unsafe { libc::strdup(text.as_ptr()) })
    }

    /// Returns a text that the host keeps.
    pub fn of(kept: &CStr) -> HostText {
        HostText(kept.as_ptr())
    }
}

const _: () = {
    assert!(size_of::<StringView>() == 16);
    assert!(size_of::<Buffer>() == 24);
    assert!(size_of::<InputRange>() == 32);
    assert!(size_of::<AllocatorAttributes>() == 16);
    assert!(std::mem::offset_of!(AllocatorAttributes, on_host) == 8);
    assert!(size_of::<Rendezvous>() == 32);
    assert!(size_of::<FileStatistics>() == 24);
    assert!(size_of::<ThreadOptions>() == 24);
};
