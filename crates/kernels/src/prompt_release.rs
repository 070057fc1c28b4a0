//! When the program's allocator, mimalloc, returns freed memory to the operating system.

#[cfg(feature = "mimalloc")]
use std::sync::{Mutex, PoisonError};

/// While one of these exists, freed memory returns to the operating system at once.
///
/// Otherwise mimalloc waits for 10 ms, and with large blocks for 100 ms, which is faster for a
/// program in a steady state; but a program that reads one large block, converts it and frees it,
/// again and again, needs the memory of all blocks of that time. Without the feature `mimalloc`
/// nothing changes.
///
/// ```
/// let prompt = regard_kernels::PromptRelease::begin();
/// // Read a model.
/// drop(prompt);
/// ```
#[derive(Debug)]
pub struct PromptRelease(());

/// How many exist, and the setting before the first.
#[cfg(feature = "mimalloc")]
static ACTIVE: Mutex<(usize, std::ffi::c_long)> = Mutex::new((0, 0));

/// `mi_option_purge_delay` of mimalloc 2: milliseconds before freed memory is returned.
#[cfg(feature = "mimalloc")]
const PURGE_DELAY: libmimalloc_sys::mi_option_t = libmimalloc_sys::mi_option_eager_commit_delay + 1;

impl PromptRelease {
    /// Begins; dropping it ends it.
    pub fn begin() -> Self {
        #[cfg(feature = "mimalloc")]
        {
            let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
            if active.0 == 0 {
                active.1 = delay();
                // A negative value, by the user's wish, means that memory is never returned.
                if active.1 > 0 {
                    set_delay(0);
                }
            }
            active.0 += 1;
        }
        PromptRelease(())
    }
}

impl Drop for PromptRelease {
    fn drop(&mut self) {
        #[cfg(feature = "mimalloc")]
        {
            let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
            active.0 -= 1;
            if active.0 == 0 {
                set_delay(active.1);
            }
        }
    }
}

#[cfg(feature = "mimalloc")]
fn delay() -> std::ffi::c_long {
    // SAFETY: the option exists, and reading it has no other requirement.
    unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) }
}

#[cfg(feature = "mimalloc")]
fn set_delay(milliseconds: std::ffi::c_long) {
    // SAFETY: the option exists and takes any number. mimalloc stores it in a plain variable that
    // its threads read without synchronisation, as it does for every option; both values are valid.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds) }
}

#[cfg(all(test, feature = "mimalloc"))]
mod tests {
    use super::*;

    #[test]
    fn the_setting_returns_when_the_last_one_ends() {
        let usual = delay();
        assert_eq!(usual, 10, "mimalloc's default of this option");
        let first = PromptRelease::begin();
        let second = PromptRelease::begin();
        drop(first);
        assert_eq!(delay(), 0);
        drop(second);
        assert_eq!(delay(), usual);
    }
}
