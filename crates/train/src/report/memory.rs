//! The memory use of this process, where the system reports it.

/// The current and the peak resident memory in bytes.
pub(crate) fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    };
    Some((bytes("VmRSS:")?, bytes("VmHWM:")?))
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn some_is_in_use() {
        let (now, most) = super::resident().unwrap();
        assert!(now > 1 << 20 && most >= now, "{now} {most}");
    }
}
