//! [`Foreign`]: memory that a plugin has made for a tensor, and frees by a function of its own.

use std::sync::Arc;

use crate::fault;
use crate::guard::Callback;
use crate::raw::Memory;

/// Memory of a plugin. Its deallocator runs once, when the last tensor lets go.
pub struct Foreign {
    memory: Memory,
    len_bytes: usize,
    deallocator: Callback,
    argument: usize,
}

impl Foreign {
    /// Takes memory over, with the function that frees it: `deallocator(memory, length, argument)`.
    pub fn new(
        memory: Memory,
        len_bytes: usize,
        deallocator: Callback,
        argument: usize,
    ) -> Foreign {
        Foreign {
            memory,
            len_bytes,
            deallocator,
            argument,
        }
    }

    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Returns the memory.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Returns the first bytes as an owner of a buffer of the host.
    pub fn first(self: Arc<Self>, len_bytes: usize) -> First {
        let len_bytes = len_bytes.min(self.len_bytes);
        First {
            memory: self,
            len_bytes,
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let arguments = [self.memory.address(), self.len_bytes, self.argument];
        if let Err(exception) = self.deallocator.call(&arguments) {
            fault::record(format_args!("the deallocator of a tensor {exception}"));
        }
    }
}

/// The first bytes of a plugin's memory.
pub struct First {
    memory: Arc<Foreign>,
    len_bytes: usize,
}

impl AsRef<[u8]> for First {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.memory.memory.bytes(self.len_bytes, "data");
        bytes.unwrap_or_default()
    }
}
