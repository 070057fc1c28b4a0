//! A self-contained HTML page of text, tables and pictures, for training reports and studies. It
//! has no scripts and loads nothing.

use std::fmt::Write;

use super::svg::escape;
use super::{math, text};

/// A table with a header. Numeric columns are right-aligned.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The rows; short ones are padded with empty cells.
    pub rows: Vec<Vec<String>>,
    /// The caption above the table.
    pub caption: String,
}

impl Table {
    /// A table with the given columns and no rows yet.
    pub fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Table { head: head.iter().map(|s| s.as_ref().to_string()).collect(), ..Table::default() }
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(mut self, cells: &[S]) -> Self {
        self.rows.push(cells.iter().map(|s| s.as_ref().to_string()).collect());
        self
    }

    /// Sets the caption.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    fn render(&self, prose: impl Fn(&str) -> String, out: &mut String) {
        let columns = self.rows.iter().map(Vec::len).chain([self.head.len()]).max().unwrap_or(0);
        let numeric: Vec<bool> = (0..columns)
            .map(|c| {
                let mut cells =
                    self.rows.iter().filter_map(|r| r.get(c)).filter(|t| !t.is_empty()).peekable();
                cells.peek().is_some() && cells.all(|t| is_number(t))
            })
            .collect();
        let class = |c: usize| if numeric[c] { " class=\"n\"" } else { "" };
        out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n");
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<caption>{}</caption>", prose(&self.caption));
        }
        if !self.head.is_empty() {
            out.push_str("<thead><tr>");
            for c in 0..columns {
                let name = self.head.get(c).map_or("", String::as_str);
                let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(c), prose(name));
            }
            out.push_str("</tr></thead>\n");
        }
        out.push_str("<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for c in 0..columns {
                let _ = write!(out, "<td{}>{}</td>", class(c), prose(row.get(c).map_or("", String::as_str)));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table></div>\n");
    }
}

/// Whether a cell is a number, possibly with a sign, thousands separators, a unit sign or an
/// exponent.
fn is_number(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['−', '±', '×']).trim_end_matches(['%', '×']).trim();
    // The exponent of 2.5 × 10⁻⁷ need not be checked.
    let text = text.split_once(" × 10").map_or(text, |(mantissa, _)| mantissa);
    matches!(text, "–" | "—" | "-" | "∞") || text.replace(',', "").parse::<f64>().is_ok()
}

/// Escapes text for a page. Line breaks and tabs are kept; other control characters become visible.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        for (i, part) in line.trim_end_matches('\r').split('\t').enumerate() {
            if i > 0 {
                out.push('\t');
            }
            out.push_str(&escape(&text::clean(part)));
        }
    }
    out
}

/// Like [`prose`], with `$…$` as MathML.
fn with_formulas(text: &str) -> String {
    let shown = |piece: &math::Piece<'_>| match *piece {
        math::Piece::Words(words) => prose(words),
        math::Piece::Formula(formula) => math::mathml(formula),
    };
    math::pieces(text).iter().map(shown).collect()
}

/// A page that is built from top to bottom.
///
/// ```
/// use regard_plot::html::{Page, Table};
/// let page = Page::new("Report")
///     .paragraph("BLEU after each epoch.")
///     .table(Table::new(&["epoch", "BLEU"]).row(&["1", "17.4"]).row(&["2", "27.9"]));
/// assert!(page.render().contains("<td class=\"n\">27.9</td>"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    body: String,
    refresh: Option<u32>,
    formulas: bool,
}

impl Page {
    /// A page with a title, which is also its first heading.
    pub fn new(title: impl Into<String>) -> Self {
        Page { title: title.into(), ..Page::default() }
    }

    /// Enables formulas: `$…$` in the title and in everything added afterwards is a formula in the
    /// notation of [`math`]. Do not use this for text from others, which may contain dollar signs.
    pub fn formulas(mut self) -> Self {
        self.formulas = true;
        self
    }

    /// A text as HTML.
    fn shown(&self, text: &str) -> String {
        if self.formulas { with_formulas(text) } else { prose(text) }
    }

    fn block(mut self, tag: &str, text: &str) -> Self {
        let text = self.shown(text);
        let _ = writeln!(self.body, "<{tag}>{text}</{tag}>");
        self
    }

    /// Adds a heading below the title.
    pub fn heading(self, text: impl AsRef<str>) -> Self {
        self.block("h2", text.as_ref())
    }

    /// Adds a paragraph of plain text.
    pub fn paragraph(self, text: impl AsRef<str>) -> Self {
        self.block("p", text.as_ref())
    }

    /// Makes the page reload itself after this many seconds.
    pub fn refresh(mut self, seconds: u32) -> Self {
        self.refresh = Some(seconds);
        self
    }

    /// Adds a paragraph in larger type, for what a reader should see first.
    pub fn lead(mut self, text: impl AsRef<str>) -> Self {
        let text = self.shown(text.as_ref());
        let _ = writeln!(self.body, "<p class=\"lead\">{text}</p>");
        self
    }

    /// Adds preformatted text in a monospaced font.
    pub fn preformatted(mut self, text: impl AsRef<str>) -> Self {
        let _ = writeln!(self.body, "<pre class=\"scroll\" tabindex=\"0\">{}</pre>", prose(text.as_ref()));
        self
    }

    /// Adds a list of links: the address relative to the page, and the text. Links with a scheme
    /// other than http(s) become plain text.
    pub fn links<H: AsRef<str>, T: AsRef<str>>(mut self, links: &[(H, T)]) -> Self {
        self.body.push_str("<ul>\n");
        for (address, text) in links {
            let (address, text) = (address.as_ref(), self.shown(text.as_ref()));
            let scheme =
                address.split(['/', '?', '#']).next().and_then(|head| head.split_once(':')).map(|(s, _)| s);
            let _ = match scheme {
                Some(s) if !s.eq_ignore_ascii_case("http") && !s.eq_ignore_ascii_case("https") => {
                    writeln!(self.body, "<li>{text}</li>")
                }
                _ => writeln!(self.body, "<li><a href=\"{}\">{text}</a></li>", prose(address)),
            };
        }
        self.body.push_str("</ul>\n");
        self
    }

    /// Adds a table.
    pub fn table(mut self, table: Table) -> Self {
        let mut body = std::mem::take(&mut self.body);
        table.render(|text| self.shown(text), &mut body);
        self.body = body;
        self
    }

    /// Adds a picture made by this crate, and a caption. The SVG is embedded unescaped, so it must
    /// not come from elsewhere.
    pub fn figure(mut self, svg: impl AsRef<str>, caption: impl AsRef<str>) -> Self {
        let _ = writeln!(
            self.body,
            "<figure><div class=\"scroll\" tabindex=\"0\">{}</div>",
            svg.as_ref().trim_end()
        );
        if !caption.as_ref().is_empty() {
            let caption = self.shown(caption.as_ref());
            let _ = writeln!(self.body, "<figcaption>{caption}</figcaption>");
        }
        self.body.push_str("</figure>\n");
        self
    }

    /// The page as HTML.
    pub fn render(&self) -> String {
        let title = self.shown(&self.title);
        let name = if self.formulas { prose(&math::plain(&self.title)) } else { title.clone() };
        let refresh = self.refresh.map_or(String::new(), |seconds| {
            format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">\n")
        });
        // The content security policy ensures that a page with text from others executes and loads
        // nothing.
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n{refresh}<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n{}</main>\n</body>\n</html>\n",
            self.body
        )
    }
}

const STYLE: &str = "
:root{color-scheme:light dark;--ground:#f5f6f8;--panel:#fff;--ink:#1c2430;--soft:#566170;--rule:#dde2e9;--link:#1d5fa8}
@media screen and (prefers-color-scheme:dark){:root{--ground:#0e1116;--panel:#14181f;--ink:#e6eaf0;--soft:#a0aab8;--rule:#2e3642;--link:#7db4f0}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif}
main{max-width:64rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 1rem}h2{font-size:1.25rem;margin:2.2rem 0 .6rem}
math{font-size:1.08em;font-family:'Cambria Math','STIX Two Math','Latin Modern Math','DejaVu Math TeX Gyre',math}.lead{font-size:1.15rem;line-height:1.5}
p{max-width:46rem;margin:.6rem 0;overflow-wrap:anywhere}a{color:var(--link)}
.scroll{overflow-x:auto;max-width:100%}
figure{margin:1.2rem 0}figure>.scroll{background:var(--panel);border:1px solid var(--rule);border-radius:8px}
figure svg{display:block;margin:0 auto}figcaption,caption{color:var(--soft);font-size:.9rem;padding:.4rem 0;text-align:left}
table{border-collapse:collapse;margin:.8rem 0;font-size:.95rem}
th,td{padding:.35rem .9rem .35rem 0;text-align:left;border-bottom:1px solid var(--rule);vertical-align:top}
th{color:var(--soft);font-weight:600;white-space:nowrap}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
pre{background:var(--panel);border:1px solid var(--rule);border-radius:8px;padding:.8rem;font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
@media print{body{background:none}figure,table,pre{break-inside:avoid}}
";
