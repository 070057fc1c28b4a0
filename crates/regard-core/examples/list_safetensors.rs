//! Lists the tensors of safetensors files for `tools/differential.py`: it reads names of files and
//! writes a line of JSON for each, either `{"tensors": [[name, type, shape, hex], …]}` or
//! `{"error": …}`.
//!
//!     ls *.safetensors | cargo run -p regard-core --features fuzzing --example list_safetensors

use regard_core::formats::fuzzing::list_safetensors;
use serde_json::json;

fn main() -> std::io::Result<()> {
    for name in std::io::stdin().lines() {
        let file = std::fs::read(name?)?;
        let line = match list_safetensors(&file) {
            Ok(tensors) => {
                let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
                let tensors = tensors.into_iter().map(|(name, dtype, shape, b)| (name, dtype, shape, hex(b)));
                json!({ "tensors": tensors.collect::<Vec<_>>() })
            }
            Err(error) => json!({ "error": error }),
        };
        println!("{line}");
    }
    Ok(())
}
