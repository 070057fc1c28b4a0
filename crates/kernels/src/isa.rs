//! The instruction set of the kernels, chosen at run time.
//!
//! An [`Isa`] can only be obtained from [`Isa::available`], [`Isa::best`] or [`Isa::from_name`],
//! which query the CPU first. Every `unsafe` call into a `#[target_feature]` function of this crate
//! relies on that.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that forces an instruction set.
pub const VARIABLE: &str = "REGARD_ISA";

/// An instruction set that this CPU has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Isa(Level);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// A value of `REGARD_ISA` that cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IsaError {
    /// No such instruction set.
    #[error("{VARIABLE}={name}: unknown instruction set; this machine has: {available}")]
    Unknown {
        /// The requested instruction set.
        name: String,
        /// The instruction sets of this machine.
        available: String,
    },
    /// Known, but this CPU lacks it.
    #[error("{VARIABLE}={name}: this CPU does not have it; this machine has: {available}")]
    Unavailable {
        /// The requested instruction set.
        name: String,
        /// The instruction sets of this machine.
        available: String,
    },
}

const KNOWN: [&str; 4] = ["portable", "avx2", "avx512", "neon"];

impl Isa {
    /// Plain Rust, the same everywhere.
    pub const PORTABLE: Isa = Isa(Level::Portable);

    /// Every instruction set of this machine, slowest first.
    pub fn available() -> Vec<Isa> {
        #[allow(unused_mut)]
        let mut found = vec![Isa::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 {
                found.push(Isa(Level::Avx2));
            }
            let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 && is_x86_feature_detected!("avx512vnni") {
                found.push(Isa(Level::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            found.push(Isa(Level::Neon));
        }
        found
    }

    /// The fastest instruction set of this machine, detected once.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::available().pop().unwrap_or(Isa::PORTABLE))
    }

    /// The instruction set of that name (`portable`, `avx2`, `avx512`, `neon`), if this CPU has it.
    pub fn from_name(name: &str) -> Result<Isa, IsaError> {
        let all = Isa::available();
        if let Some(isa) = all.iter().find(|isa| isa.name() == name) {
            return Ok(*isa);
        }
        let available = all.iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ");
        let name = name.to_owned();
        Err(match KNOWN.contains(&name.as_str()) {
            true => IsaError::Unavailable { name, available },
            false => IsaError::Unknown { name, available },
        })
    }

    /// The instruction set named by `REGARD_ISA`, or the best one if it is not set.
    pub fn from_env() -> Result<Isa, IsaError> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Isa::best()),
            Some(name) => Isa::from_name(&name.to_string_lossy()),
        }
    }

    /// Its name, as accepted by `REGARD_ISA`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
        }
    }

    /// Whether the CPU multiplies bf16 numbers in one instruction (AVX-512 BF16: Cooper Lake, Zen 4
    /// and later).
    pub fn has_bf16(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => is_x86_feature_detected!("avx512bf16"),
            _ => false,
        }
    }

    /// Whether bf16 matmuls are faster than f32 ones on this CPU.
    ///
    /// They are on Zen 4, where we measured it; later AMD CPUs are assumed to behave alike. On the
    /// Xeon that we measured (Sapphire Rapids) they are slower.
    pub fn bf16_is_faster(self) -> bool {
        self.has_bf16() && is_amd()
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}

/// Whether AMD made the CPU.
#[cfg(target_arch = "x86_64")]
fn is_amd() -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD"
}

#[cfg(not(target_arch = "x86_64"))]
fn is_amd() -> bool {
    false
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_available_set_is_found_by_its_name() {
        for isa in Isa::available() {
            assert_eq!(Isa::from_name(isa.name()), Ok(isa));
        }
    }

    #[test]
    fn bf16_is_faster_only_where_there_is_one() {
        assert!(Isa::available().into_iter().all(|isa| isa.has_bf16() || !isa.bf16_is_faster()));
    }

    #[test]
    fn unknown_and_missing_sets_are_told_apart_and_the_message_names_what_there_is() {
        let unknown = Isa::from_name("sse9").unwrap_err();
        assert!(matches!(unknown, IsaError::Unknown { .. }));
        assert!(
            unknown
                .to_string()
                .starts_with("REGARD_ISA=sse9: unknown instruction set; this machine has: portable")
        );
        let missing = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
        assert!(matches!(Isa::from_name(missing).unwrap_err(), IsaError::Unavailable { .. }));
        assert!(matches!(Isa::from_name("").unwrap_err(), IsaError::Unknown { .. }));
    }
}
