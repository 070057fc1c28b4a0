//! Normalises text as in the training of the model.

use super::SPACE;
use super::charsmap::CharsMap;
use super::model::NormaliserSpec;
use super::proto::Problem;
use super::trie::Trie;

/// The normaliser of a model.
#[derive(Debug)]
pub(super) struct Normaliser {
    rules: Option<CharsMap>,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    /// The representation of a space.
    space: &'static str,
    whitespace_as_suffix: bool,
}

impl Normaliser {
    pub(super) fn new(spec: &NormaliserSpec<'_>, whitespace_as_suffix: bool) -> Result<Self, Problem> {
        Ok(Normaliser {
            rules: if spec.charsmap.is_empty() { None } else { Some(CharsMap::read(spec.charsmap)?) },
            add_dummy_prefix: spec.add_dummy_prefix,
            remove_extra_whitespaces: spec.remove_extra_whitespaces,
            space: if spec.escape_whitespaces { SPACE } else { " " },
            whitespace_as_suffix,
        })
    }

    /// The normalised text; user-defined pieces are left unchanged.
    pub(super) fn normalise(&self, text: &str, user_defined: Option<&Trie>) -> String {
        let mut at = 0;
        if self.remove_extra_whitespaces {
            while let Some((" ", length)) = self.next(text, at, user_defined) {
                at += length;
            }
        }
        let mut out = String::with_capacity(text.len() + text.len() / 2 + 3);
        if at == text.len() {
            return out;
        }
        if self.add_dummy_prefix && !self.whitespace_as_suffix {
            out += self.space;
        }
        let mut after_space = self.remove_extra_whitespaces;
        while let Some((mut part, length)) = self.next(text, at, user_defined) {
            at += length;
            if after_space {
                part = part.trim_start_matches(' ');
            }
            for (i, piece) in part.split(' ').enumerate() {
                if i > 0 {
                    out += self.space;
                }
                out += piece;
            }
            // A character that is replaced by nothing does not separate two spaces.
            if self.remove_extra_whitespaces && !part.is_empty() {
                after_space = part.ends_with(' ');
            }
        }
        if self.remove_extra_whitespaces {
            out.truncate(out.trim_end_matches(self.space).len());
        }
        if self.add_dummy_prefix && self.whitespace_as_suffix {
            out += self.space;
        }
        out
    }

    /// The normalised text at a position, and the number of bytes that it replaces; `None` at the
    /// end.
    fn next<'a>(&'a self, text: &'a str, at: usize, user_defined: Option<&Trie>) -> Option<(&'a str, usize)> {
        let rest = &text.as_bytes()[at..];
        if rest.is_empty() {
            return None;
        }
        // Only the rules of a damaged file can end within a character.
        let Some(here) = text.get(at..) else { return Some(("\u{fffd}", 1)) };
        if let Some(length) = user_defined.and_then(|symbols| symbols.longest(rest)) {
            return Some((&here[..length], length));
        }
        if let Some((length, replacement)) = self.rules.as_ref().and_then(|rules| rules.longest(rest)) {
            return Some((replacement, length));
        }
        let length = here.chars().next().map_or(1, char::len_utf8);
        Some((&here[..length], length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalise(text: &str, change: impl FnOnce(&mut NormaliserSpec<'_>), suffix: bool) -> String {
        let mut spec = NormaliserSpec::default();
        change(&mut spec);
        let symbols = Trie::build(vec![("<a b>", 0)]).unwrap();
        Normaliser::new(&spec, suffix).unwrap().normalise(text, Some(&symbols))
    }

    #[test]
    fn spaces_are_marked_and_tidied() {
        for (text, want) in [
            ("", ""),
            ("  ", ""),
            (" a  b ", "▁a▁b"),
            ("▁", ""),
            ("a ▁", "▁a"),
            ("\ta", "▁\ta"),
            ("x<a b> <a b>", "▁x<a▁b>▁<a▁b>"),
        ] {
            assert_eq!(normalise(text, |_| (), false), want, "{text:?}");
        }
        assert_eq!(normalise(" a  b ", |_| (), true), "a▁b▁");
        assert_eq!(normalise(" a  b ", |spec| spec.add_dummy_prefix = false, false), "a▁b");
        assert_eq!(normalise(" a  b ", |spec| spec.remove_extra_whitespaces = false, false), "▁▁a▁▁b▁");
        assert_eq!(normalise(" a  b ", |spec| spec.escape_whitespaces = false, false), " a b");
    }
}
