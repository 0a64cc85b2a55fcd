//! The memory allocator of the program: jemalloc, which gives freed pages back to the system while the program runs.
//!
//! Rule: what a peak took is returned within seconds, by a thread of the allocator's own, so that no call waits for it.
//! The reasons and the figures are in `docs/decisions/0024-allocator.md`.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// How many bytes [`OPTIONS`] has.
const OPTIONS_LEN: usize = 96;

/// Options that jemalloc reads at its start, by the name of this symbol; the environment (`_RJEM_MALLOC_CONF`) overrides them.
/// Two arenas are enough for two threads of the runtime, and more would each keep pages; freed pages are returned after 2 s, at
/// once those that were marked before; huge pages are not used, for one small block would keep 2 MiB.
#[allow(unsafe_code)]
// jemalloc knows no other way to have options within the program
// SAFETY: no other symbol has this name; the type is what jemalloc expects: a pointer to text that ends in a zero byte.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub(crate) static OPTIONS: &[u8; OPTIONS_LEN] =
    b"narenas:2,background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0,thp:never,tcache_max:4096\0";
