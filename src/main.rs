//! The program `regard`; its commands are in the library, as [`regard::cli`].

use std::process::ExitCode;

/// The threads of a training step allocate their packing buffers anew, in bf16 for each matmul. The
/// system allocator returns such large blocks to the kernel each time, which stalls all cores.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    regard::cli::main()
}
