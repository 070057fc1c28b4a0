//! Formulas in running text: `$…$` becomes MathML on a page and plain Unicode in a terminal.
//!
//! The notation is the part of TeX that is readable in source code: `x_t`, `e^{kx}`, `√{d_k}`,
//! `\frac{a}{b}`; Greek letters, sums and operators are written directly. Adjacent letters are
//! separate variables, unless they form the name of a function.

use super::svg::escape;
use std::fmt::Write;

/// Names that form one identifier.
const NAMES: [&str; 12] =
    ["softmax", "Concat", "head", "diag", "log", "max", "sin", "cos", "exp", "FFN", "ln", "PE"];

/// A part of a formula.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// A variable or the name of a function.
    Name(String),
    Number(String),
    Operator(char),
    Row(Vec<Node>),
    /// A base with its subscript and superscript.
    Scripts(Box<Node>, Option<Box<Node>>, Option<Box<Node>>),
    Root(Box<Node>),
    Fraction(Box<Node>, Box<Node>),
}

/// A piece of running text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Plain text.
    Words(&'a str),
    /// The source of a formula, without its dollar signs.
    Formula(&'a str),
}

/// Splits a text at its dollar signs. A single unmatched one is a literal dollar sign.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        let Some((formula, behind)) = after.split_once('$') else { break };
        if !before.is_empty() {
            found.push(Piece::Words(before));
        }
        found.push(Piece::Formula(formula));
        rest = behind;
    }
    if !rest.is_empty() {
        found.push(Piece::Words(rest));
    }
    found
}

/// A text with its formulas in plain Unicode, for a terminal.
pub fn plain(text: &str) -> String {
    let shown = |piece: &Piece<'_>| match *piece {
        Piece::Words(words) => words.to_owned(),
        Piece::Formula(formula) => {
            let mut out = String::new();
            parse(formula).iter().for_each(|node| write_plain(node, &mut out));
            out
        }
    };
    pieces(text).iter().map(shown).collect()
}

/// A formula as a MathML element.
pub fn mathml(formula: &str) -> String {
    let mut out = String::from("<math xmlns=\"http://www.w3.org/1998/Math/MathML\">");
    write_row(&parse(formula), &mut out);
    out.push_str("</math>");
    out
}

fn parse(formula: &str) -> Vec<Node> {
    let mut reader = Reader { rest: formula, depth: 0 };
    let mut nodes = Vec::new();
    while !reader.rest.is_empty() {
        nodes.extend(reader.row());
        // An unmatched closing brace.
        reader.next();
    }
    nodes
}

/// The maximum nesting depth of groups; deeper ones are read as a flat row.
const DEPTH: usize = 32;

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken.to_owned()
    }

    /// Parses everything up to the brace that closes the group, or to the end.
    fn row(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        loop {
            self.take(char::is_whitespace);
            if self.rest.is_empty() || self.rest.starts_with('}') {
                return nodes;
            }
            let Some(base) = self.atom() else { return nodes };
            nodes.push(self.with_scripts(base));
        }
    }

    fn with_scripts(&mut self, base: Node) -> Node {
        let (mut below, mut above) = (None, None);
        loop {
            let place = match self.rest.chars().next() {
                Some('_') if below.is_none() => &mut below,
                Some('^') if above.is_none() => &mut above,
                _ => break,
            };
            self.next();
            *place = self.atom().map(Box::new);
        }
        match (&below, &above) {
            (None, None) => base,
            _ => Node::Scripts(Box::new(base), below, above),
        }
    }

    /// Parses a group in braces, or the next name, number or operator.
    fn atom(&mut self) -> Option<Node> {
        if let Some(rest) = self.rest.strip_prefix("\\frac") {
            self.rest = rest;
            let (above, below) = (self.atom()?, self.atom()?);
            return Some(Node::Fraction(Box::new(above), Box::new(below)));
        }
        if let Some(name) = NAMES.iter().find(|name| self.rest.starts_with(**name)) {
            self.rest = &self.rest[name.len()..];
            return Some(Node::Name((*name).to_owned()));
        }
        match self.rest.chars().next()? {
            '{' if self.depth < DEPTH => {
                self.next();
                self.depth += 1;
                let mut row = self.row();
                self.depth -= 1;
                self.next();
                Some(if row.len() == 1 { row.remove(0) } else { Node::Row(row) })
            }
            c if c.is_ascii_digit() => Some(Node::Number(self.take(|c| c.is_ascii_digit() || c == '.'))),
            '√' => {
                self.next();
                Some(Node::Root(Box::new(self.atom()?)))
            }
            c if c.is_alphabetic() && c != 'Σ' => {
                self.next();
                Some(Node::Name(c.to_string()))
            }
            c => {
                self.next();
                Some(Node::Operator(c))
            }
        }
    }
}

fn write_row(nodes: &[Node], out: &mut String) {
    match nodes {
        [node] => write_mathml(node, out),
        nodes => {
            out.push_str("<mrow>");
            for (i, node) in nodes.iter().enumerate() {
                write_mathml(node, out);
                let called = |next: &Node| *next != Node::Operator('(');
                if is_function(node) && nodes.get(i + 1).is_some_and(called) {
                    out.push_str("<mspace width=\"0.17em\"/>");
                }
            }
            out.push_str("</mrow>");
        }
    }
}

fn is_function(node: &Node) -> bool {
    match node {
        Node::Name(name) => name.len() > 1 && name.is_ascii(),
        Node::Scripts(base, ..) => is_function(base),
        _ => false,
    }
}

fn write_mathml(node: &Node, out: &mut String) {
    let element = |name: &str, children: &[&Node], out: &mut String| {
        let _ = write!(out, "<{name}>");
        children.iter().for_each(|child| write_mathml(child, out));
        let _ = write!(out, "</{name}>");
    };
    match node {
        Node::Name(name) => {
            let _ = write!(out, "<mi>{}</mi>", escape(name));
        }
        Node::Number(number) => {
            let _ = write!(out, "<mn>{}</mn>", escape(number));
        }
        Node::Operator('Σ') => out.push_str("<mo>∑</mo>"),
        // Parentheses do not stretch.
        Node::Operator(c) => {
            let _ = write!(out, "<mo stretchy=\"false\">{}</mo>", escape(&c.to_string()));
        }
        Node::Row(nodes) => write_row(nodes, out),
        Node::Scripts(base, Some(below), Some(above)) => element("msubsup", &[base, below, above], out),
        Node::Scripts(base, Some(below), None) => element("msub", &[base, below], out),
        Node::Scripts(base, None, Some(above)) => element("msup", &[base, above], out),
        Node::Scripts(base, None, None) => write_mathml(base, out),
        Node::Root(inner) => element("msqrt", &[inner], out),
        Node::Fraction(above, below) => element("mfrac", &[above, below], out),
    }
}

const RAISED: (&str, &str) =
    ("0123456789+−=()abcdefghijklmnoprstuvwxyzT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀ");
const LOWERED: (&str, &str) = ("0123456789+−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ");

/// The text in superscript or subscript characters, if they exist for all of its characters.
fn shifted(text: &str, (from, to): (&str, &str)) -> Option<String> {
    let one = |c: char| from.chars().position(|f| f == c).and_then(|i| to.chars().nth(i));
    text.chars().filter(|c| *c != ' ').map(one).collect()
}

fn write_plain(node: &Node, out: &mut String) {
    let shown = |node: &Node| {
        let mut text = String::new();
        write_plain(node, &mut text);
        text
    };
    let grouped = |node: &Node| match node {
        Node::Row(nodes) if nodes.len() > 1 => format!("({})", shown(node)),
        _ => shown(node),
    };
    match node {
        Node::Name(text) | Node::Number(text) => {
            if NAMES.iter().any(|name| out.ends_with(name)) {
                out.push(' ');
            }
            out.push_str(text);
        }
        Node::Operator(c) => match c {
            '=' | '+' | '−' | '≤' | '≥' | '←' if !out.is_empty() && !out.ends_with(['(', ' ', ',']) =>
            {
                let _ = write!(out, " {c} ");
            }
            ',' | 'Σ' => {
                let _ = write!(out, "{c} ");
            }
            c => out.push(*c),
        },
        Node::Row(nodes) => nodes.iter().for_each(|node| write_plain(node, out)),
        Node::Scripts(base, below, above) => {
            write_plain(base, out);
            for (script, letters, sign) in [(below, LOWERED, '_'), (above, RAISED, '^')] {
                let Some(script) = script else { continue };
                match shifted(&shown(script), letters) {
                    Some(text) => out.push_str(&text),
                    None => {
                        let _ = write!(out, "{sign}{}", grouped(script));
                    }
                }
            }
        }
        Node::Root(inner) => {
            let _ = write!(out, "√{}", grouped(inner));
        }
        Node::Fraction(above, below) => {
            let _ = write!(out, "{}/{}", grouped(above), grouped(below));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_mathml() {
        let inner = |formula: &str| {
            let whole = mathml(formula);
            let start = whole.find('>').unwrap() + 1;
            whole[start..whole.len() - "</math>".len()].to_owned()
        };
        assert_eq!(inner("e^{kx}"), "<msup><mi>e</mi><mrow><mi>k</mi><mi>x</mi></mrow></msup>");
        assert_eq!(inner("√{d_k}"), "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>");
        assert_eq!(inner("\\frac{1}{n}"), "<mfrac><mn>1</mn><mi>n</mi></mfrac>");
        assert_eq!(
            inner("Σ x_i^2"),
            "<mrow><mo>∑</mo><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></mrow>"
        );
        assert_eq!(
            inner("PE(p)"),
            "<mrow><mi>PE</mi><mo stretchy=\"false\">(</mo><mi>p</mi><mo stretchy=\"false\">)</mo></mrow>"
        );
        assert_eq!(inner("a < b"), "<mrow><mi>a</mi><mo stretchy=\"false\">&lt;</mo><mi>b</mi></mrow>");
        for formula in [
            "e^{k(x−max)}",
            "x_{t−1}",
            "10000^{2i/d}",
            "\\frac{e^{kx}}{Σ e^{kx}}",
            "",
            "}{",
            "a^",
            "√",
            "{{{",
        ] {
            let text = mathml(formula);
            roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{formula}: {e}: {text}"));
        }
        mathml(&"{".repeat(100_000));
    }

    #[test]
    fn a_terminal_gets_unicode() {
        for (text, wanted) in [
            ("$ln(Σ e^{kx})/k$ is close", "ln(Σ eᵏˣ)/k is close"),
            ("divided by $√{d_k}$", "divided by √dₖ"),
            ("$y_t = f(y_{t−1}, x_t)$", "yₜ = f(yₜ₋₁, xₜ)"),
            ("$p/10000^{2i/d}$", "p/10000^(2i/d)"),
            ("$\\frac{a+b}{2}$", "(a + b)/2"),
            ("$−x$ and $e^{−kx}$", "−x and e⁻ᵏˣ"),
            ("$2 ln n$ and $log_k n$", "2ln n and logₖn"),
            ("costs $5", "costs $5"),
            ("$g^{−1}(Σ g(x))$", "g⁻¹(Σ g(x))"),
        ] {
            assert_eq!(plain(text), wanted);
        }
    }

    #[test]
    fn text_is_cut_at_dollars() {
        use Piece::{Formula, Words};
        assert_eq!(pieces("a $x$ b"), [Words("a "), Formula("x"), Words(" b")]);
        assert_eq!(pieces("$x$$y$"), [Formula("x"), Formula("y")]);
        assert_eq!(pieces("only $ one"), [Words("only $ one")]);
    }
}
