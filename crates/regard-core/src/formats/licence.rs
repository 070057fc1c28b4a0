//! The licence of a model's weights, as its folder states it.

use super::json::Keys;
use crate::{Result, bounded, store};
use serde::Serialize;
use std::path::Path;

/// The maximum length of a model card.
const MAX_CARD_BYTES: u64 = 4 << 20;

/// The licence of a model's weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Licence {
    /// The name as stated, for example `apache-2.0`.
    pub name: String,
    /// Whether it allows commercial use, judging by its name.
    pub commercial: bool,
}

impl Licence {
    /// The licence with this name.
    ///
    /// ```
    /// use regard_core::formats::Licence;
    /// assert!(Licence::new("apache-2.0").commercial);
    /// let licence = Licence::new("cc-by-nc-4.0");
    /// assert_eq!(licence.to_string(), "cc-by-nc-4.0 (forbids commercial use)");
    /// ```
    pub fn new(name: &str) -> Self {
        let lower = name.to_lowercase();
        let forbids = lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == "nc")
            || lower.replace(['-', ' '], "").contains("noncommercial");
        Licence { name: name.to_owned(), commercial: !forbids }
    }
}

impl std::fmt::Display for Licence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let note = if self.commercial { "" } else { " (forbids commercial use)" };
        write!(f, "{}{note}", self.name)
    }
}

/// The licence that a model folder states: recorded at download, in the front matter of its model
/// card (`README.md`), or in its `metadata.json`.
pub fn licence(folder: &Path) -> Result<Option<Licence>> {
    if let Some(name) = store::recorded_licence(folder) {
        return Ok(Some(Licence::new(&name)));
    }
    let card = folder.join("README.md");
    if card.is_file()
        && let Some(name) = of_card(&bounded::read_text(&card, MAX_CARD_BYTES)?)
    {
        return Ok(Some(Licence::new(&name)));
    }
    let metadata = folder.join("metadata.json");
    if metadata.is_file()
        && let Ok(Some(name)) = Keys::open(&metadata)?.get::<String>("license")
    {
        return Ok(Some(Licence::new(&name)));
    }
    Ok(None)
}

/// The licence in the YAML front matter of a model card: `license: mit`, a list of them, or
/// `license: other` with a `license_name`.
pub(super) fn of_card(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let front: Vec<&str> = lines.take_while(|line| line.trim_end() != "---").collect();
    let value = |key: &str| -> Option<String> {
        let at = front.iter().position(|line| line.strip_prefix(key).is_some_and(|l| l.starts_with(':')))?;
        let written = front[at][key.len() + 1..].split(" #").next().unwrap_or_default().trim();
        let listed = match written.strip_prefix('[') {
            Some(inside) => inside.trim_end_matches(']').split(',').map(unquoted).collect(),
            None if !written.is_empty() => vec![unquoted(written)],
            None => {
                let items = front[at + 1..].iter().map_while(|line| line.trim_start().strip_prefix("- "));
                items.map(unquoted).collect::<Vec<_>>()
            }
        };
        Some(listed.join(", ")).filter(|value| !value.is_empty())
    };
    match value("license") {
        Some(name) if name == "other" => value("license_name").or(Some(name)),
        found => found,
    }
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_licence_is_in_the_front_matter_of_the_card() {
        for (text, name) in [
            ("---\nlanguage: en\nlicense: apache-2.0\n---\n# x\nlicense: mit\n", Some("apache-2.0")),
            ("---\r\nlicense: \"cc-by-nc-4.0\" # note\r\n---\r\n", Some("cc-by-nc-4.0")),
            ("---\nlicense:\n- mit\n- cc-by-4.0\ntags:\n- x\n---\n", Some("mit, cc-by-4.0")),
            ("---\nlicense: [mit, 'gpl-3.0']\n---\n", Some("mit, gpl-3.0")),
            ("---\nlicense: other\nlicense_name: llama3\n---\n", Some("llama3")),
            ("---\nlicense: other\n---\n", Some("other")),
            ("# Model\nlicense: mit\n", None),
            ("---\nlicense_name: x\n---\n", None),
            ("---\nlicense:\n---\n", None),
            ("", None),
        ] {
            assert_eq!(of_card(text).as_deref(), name, "{text:?}");
        }
    }

    #[test]
    fn a_folder_states_it_in_one_of_three_places() {
        let folder = tempfile::tempdir().unwrap();
        let of = || licence(folder.path()).unwrap().map(|licence| licence.to_string());
        assert_eq!(of(), None);
        std::fs::write(folder.path().join("metadata.json"), "{\"license\": \"CC0\"}").unwrap();
        assert_eq!(of().as_deref(), Some("CC0"));
        std::fs::write(folder.path().join("README.md"), "---\nlicense: cc-by-nc-sa-4.0\n---\n").unwrap();
        assert_eq!(of().as_deref(), Some("cc-by-nc-sa-4.0 (forbids commercial use)"));
        for name in ["mit", "Nconly", "cc-by-4.0"] {
            assert!(Licence::new(name).commercial, "{name}");
        }
        for name in ["CC BY-NC 4.0", "Non-Commercial", "cc_by_nc"] {
            assert!(!Licence::new(name).commercial, "{name}");
        }
    }
}
