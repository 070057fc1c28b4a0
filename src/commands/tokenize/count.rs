//! How often each piece occurs.

use super::super::{CommandResult, Output};
use regard::text::Tokenizer;
use serde_json::{Value, json};

/// The counts of a text, without `</s>`.
pub(super) struct Counts<'a> {
    tokenizer: &'a Tokenizer,
    pieces: Vec<u64>,
    lines: u64,
    longest: usize,
}

impl<'a> Counts<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        Counts { tokenizer, pieces: vec![0; tokenizer.size()], lines: 0, longest: 0 }
    }

    pub(super) fn add(&mut self, ids: &[u32]) {
        self.lines += 1;
        self.longest = self.longest.max(ids.len());
        for &id in ids {
            if let Some(count) = self.pieces.get_mut(id as usize) {
                *count += 1;
            }
        }
    }

    /// Prints the summary, then the `top` most frequent pieces; ties go to the lower ids.
    pub(super) fn print(&self, output: &mut Output, top: usize, json: bool) -> CommandResult {
        let tokens: u64 = self.pieces.iter().sum();
        let per_line = if self.lines == 0 { 0.0 } else { tokens as f64 / self.lines as f64 };
        let share = |n: u64| if tokens == 0 { 0.0 } else { n as f64 / tokens as f64 };
        let mut used: Vec<(String, u64)> = Vec::new();
        for (id, &count) in (0..).zip(&self.pieces) {
            if count > 0 {
                used.push((self.tokenizer.piece(id).unwrap_or_default(), count));
            }
        }
        let bytes: u64 = used.iter().filter(|(piece, _)| is_byte(piece)).map(|(_, count)| count).sum();
        let unknown = self.pieces.get(self.tokenizer.unk() as usize).copied().unwrap_or(0);
        let distinct = used.len();
        used.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        used.truncate(top);

        if json {
            let pieces: Vec<Value> =
                used.iter().map(|(piece, count)| json!({"piece": piece, "count": count})).collect();
            return output.line(json!({
                "lines": self.lines,
                "tokens": tokens,
                "tokens_per_line": per_line,
                "longest": self.longest,
                "byte_tokens": bytes,
                "byte_share": share(bytes),
                "unknown": unknown,
                "vocabulary": self.tokenizer.size(),
                "vocabulary_used": distinct,
                "pieces": pieces,
            }));
        }
        output.line(format_args!("lines            {:>10}", self.lines))?;
        output.line(format_args!("tokens           {tokens:>10}"))?;
        output.line(format_args!("tokens per line  {per_line:>10.2}  longest {}", self.longest))?;
        output.line(format_args!("byte fallback    {bytes:>10}  {:.2} %", 100.0 * share(bytes)))?;
        output.line(format_args!("unknown          {unknown:>10}  {:.2} %", 100.0 * share(unknown)))?;
        output.line(format_args!("pieces used      {distinct:>10}  of {}", self.tokenizer.size()))?;
        if !used.is_empty() {
            output.line(format_args!("\n     count  share %  piece"))?;
        }
        for (piece, count) in &used {
            output.line(format_args!("{count:>10}  {:>7.2}  {piece}", 100.0 * share(*count)))?;
        }
        Ok(())
    }
}

/// Whether a piece stands for a byte: `<0x00>` to `<0xFF>`.
fn is_byte(piece: &str) -> bool {
    let digits = piece.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    digits.is_some_and(|digits| digits.len() == 2 && u8::from_str_radix(digits, 16).is_ok())
}
