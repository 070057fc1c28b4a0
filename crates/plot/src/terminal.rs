//! Heat maps as text, no wider than the terminal.

use super::colour::{Rgb, ansi256, dark};
use super::matrix::{Matrix, position, scale_range};
use super::text::{clean, clusters, columns, truncate};
use super::ticks::brief;

const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Shown for a cell without a value.
const MISSING: char = '·';
/// The maximum length of a row label, and the maximum height of a column label.
const MAX_LABEL: usize = 20;
const MAX_HEADER: usize = 12;

/// How a cell shows its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Shades,
    Ansi256,
    TrueColour,
}

/// The matrix as lines of at most `width` columns: a header with the column names (horizontal if
/// they fit above their cells, otherwise vertical), a line per row, and the scale. A matrix that is
/// too wide is split into blocks that follow each other. With `colour`, escape codes colour the
/// cells (24-bit if `COLORTERM` announces it, otherwise the 256 colours that every terminal has);
/// without it, they are shades made of ` ░▒▓█`. Missing labels become numbers, and NaN becomes a
/// dot.
pub fn heat_map<R: AsRef<str>, C: AsRef<str>>(
    matrix: &Matrix,
    row_labels: &[R],
    column_labels: &[C],
    width: usize,
    colour: bool,
) -> String {
    let announced = std::env::var("COLORTERM").unwrap_or_default();
    let mode = match (colour, announced.as_str()) {
        (false, _) => Mode::Shades,
        (true, "truecolor" | "24bit") => Mode::TrueColour,
        (true, _) => Mode::Ansi256,
    };
    let names = |labels: Vec<String>, count: usize| -> Vec<String> {
        let name = |i: usize| labels.get(i).map_or_else(|| i.to_string(), |l| clean(l));
        (0..count).map(name).collect()
    };
    let rows = names(row_labels.iter().map(|l| l.as_ref().to_string()).collect(), matrix.rows());
    let columns = names(column_labels.iter().map(|l| l.as_ref().to_string()).collect(), matrix.columns());
    draw(matrix, &rows, &columns, width.max(1), mode)
}

/// For each row, the columns with the largest weights in descending order, as lines of at most
/// `width` columns. The stroke before a name shows the strength of its weight.
///
/// ```
/// use regard_plot::{Matrix, terminal};
/// let weights = Matrix::from_rows(&[[0.9, 0.1], [0.2, 0.8]]);
/// let text = terminal::lines(&weights, &["le", "chat"], &["the", "cat"], 80);
/// assert_eq!(text, "  le ━━ the 0.90  ┄┄ cat 0.10\nchat ━━ cat 0.80  ── the 0.20\n");
/// ```
pub fn lines<R: AsRef<str>, C: AsRef<str>>(
    matrix: &Matrix,
    row_labels: &[R],
    column_labels: &[C],
    width: usize,
) -> String {
    let label =
        |labels: &[String], i: usize| labels.get(i).map_or_else(|| i.to_string(), |label| clean(label));
    let names: Vec<String> = row_labels.iter().map(|l| l.as_ref().to_owned()).collect();
    let others: Vec<String> = column_labels.iter().map(|l| l.as_ref().to_owned()).collect();
    let side = (width / 3).clamp(1, MAX_LABEL);
    let rows: Vec<String> = (0..matrix.rows()).map(|i| truncate(&label(&names, i), side)).collect();
    let widest = rows.iter().map(|row| columns(row)).max().unwrap_or(0);
    let mut out = String::new();
    for (row, weights) in rows.iter().zip(matrix.values().chunks(matrix.columns().max(1))) {
        let mut best: Vec<(usize, f32)> =
            weights.iter().copied().enumerate().filter(|(_, weight)| *weight >= LEAST).collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut line = format!("{}{row}", " ".repeat(widest - columns(row)));
        for (n, (j, weight)) in best.into_iter().take(MOST).enumerate() {
            let stroke = match weight {
                w if w >= 0.5 => "━━",
                w if w >= 0.2 => "──",
                _ => "┄┄",
            };
            let gap = if n == 0 { " " } else { "  " };
            let part = format!("{gap}{stroke} {} {weight:.2}", truncate(&label(&others, j), MAX_LABEL));
            if columns(&line) + columns(&part) > width && n > 0 {
                break;
            }
            line.push_str(&part);
        }
        out.push_str(&truncate(&line, width.max(1)));
        out.push('\n');
    }
    out
}

/// Weights below this are omitted, and at most this many are shown per row.
const LEAST: f32 = 0.05;
const MOST: usize = 4;

fn draw(matrix: &Matrix, rows: &[String], names: &[String], width: usize, mode: Mode) -> String {
    if matrix.values().is_empty() {
        return truncate("(no data)", width) + "\n";
    }
    let widest =
        |labels: &[String]| labels.iter().map(|l| columns(&truncate(l, MAX_LABEL))).max().unwrap_or(0);
    // Labels are shortened before cells are, and are omitted if a label and a cell do not fit side
    // by side.
    let beside = if width < 6 { 0 } else { widest(rows).min(width * 2 / 5) };
    let room = width - beside - usize::from(beside > 0);
    let across = widest(names) + 1;
    let horizontal = across <= 10 && across * names.len() <= room;
    let needs_two = names.iter().flat_map(|l| clusters(l)).any(|c| columns(&c) > 1);
    let cell = if horizontal {
        across.max(3)
    } else if room >= 2 && (needs_two || names.len() * 2 <= room) {
        2
    } else {
        1
    };
    let cell = cell.min(room);
    let per_block = (room / cell).max(1);
    let range = scale_range(None, matrix.extent());
    let mut out = String::new();
    for from in (0..names.len()).step_by(per_block) {
        let to = (from + per_block).min(names.len());
        if from > 0 {
            out.push('\n');
        }
        header(&mut out, &names[from..to], beside, cell, horizontal);
        let block = matrix.slice_columns(from, to);
        for (label, values) in rows.iter().zip(block.values().chunks((to - from).max(1))) {
            if beside > 0 {
                let label = truncate(label, beside);
                out.push_str(&" ".repeat(beside - columns(&label)));
                out.push_str(&label);
                out.push(' ');
            }
            let positions = values.iter().map(|v| position(*v, range));
            line(&mut out, positions, cell, mode);
        }
    }
    legend(&mut out, matrix, range, width, mode);
    out
}

fn header(out: &mut String, names: &[String], beside: usize, cell: usize, horizontal: bool) {
    let indent = " ".repeat(beside + usize::from(beside > 0));
    let pieces: Vec<Vec<String>> = if horizontal {
        names.iter().map(|name| vec![truncate(name, cell.saturating_sub(1).max(1))]).collect()
    } else {
        let fit = |c: String| if columns(&c) <= cell { c } else { MISSING.to_string() };
        let tall = |name: &String| {
            let mut pieces: Vec<String> = clusters(name).into_iter().take(MAX_HEADER + 1).map(fit).collect();
            if pieces.len() > MAX_HEADER {
                pieces.truncate(MAX_HEADER - 1);
                pieces.push("…".to_string());
            }
            pieces
        };
        names.iter().map(tall).collect()
    };
    let height = pieces.iter().map(Vec::len).max().unwrap_or(0);
    for level in 0..height {
        let mut text = indent.clone();
        for piece in &pieces {
            // Vertical names end just above their column.
            let at = (level + piece.len()).checked_sub(height);
            let piece = at.and_then(|at| piece.get(at)).map_or("", String::as_str);
            let left = if horizontal { (cell - columns(piece)) / 2 } else { 0 };
            text.push_str(&" ".repeat(left));
            text.push_str(piece);
            text.push_str(&" ".repeat(cell - left - columns(piece)));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

fn line(out: &mut String, positions: impl Iterator<Item = Option<f64>>, cell: usize, mode: Mode) {
    cells(out, positions, cell, mode);
    if mode == Mode::Shades {
        out.truncate(out.trim_end_matches(' ').len());
    }
    out.push('\n');
}

fn cells(out: &mut String, positions: impl Iterator<Item = Option<f64>>, cell: usize, mode: Mode) {
    let mut painted = None;
    for at in positions {
        let paint = if mode == Mode::Shades { None } else { at.map(|t| background(dark(t), mode)) };
        if paint != painted {
            out.push_str(paint.as_deref().unwrap_or("\x1b[0m"));
            painted = paint;
        }
        let fill = match at {
            None => MISSING,
            Some(t) if mode == Mode::Shades => SHADES[(t * (SHADES.len() - 1) as f64).round() as usize],
            Some(_) => ' ',
        };
        out.extend(std::iter::repeat_n(fill, cell));
    }
    if painted.is_some() {
        out.push_str("\x1b[0m");
    }
}

/// With the full background painted from dark to bright, a map looks the same on light and dark
/// terminals.
fn background(colour: Rgb, mode: Mode) -> String {
    let [r, g, b] = colour;
    match mode {
        Mode::TrueColour => format!("\x1b[48;2;{r};{g};{b}m"),
        _ => format!("\x1b[48;5;{}m", ansi256(colour)),
    }
}

fn legend(out: &mut String, matrix: &Matrix, range: (f64, f64), width: usize, mode: Mode) {
    let (lo, hi) = (brief(range.0), brief(range.1));
    let steps = if mode == Mode::Shades { SHADES.len() } else { 16 };
    let missing = if matrix.values().iter().any(|v| v.is_nan()) { "   · no value" } else { "" };
    if columns(&lo) + columns(&hi) + columns(missing) + steps + 2 > width {
        return;
    }
    out.push_str(&lo);
    out.push(' ');
    cells(out, (0..steps).map(|i| Some(i as f64 / (steps - 1) as f64)), 1, mode);
    out.push_str(&format!(" {hi}{missing}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line without its escape codes.
    fn plain(line: &str) -> String {
        let mut out = String::new();
        let mut parts = line.split('\x1b');
        out.push_str(parts.next().unwrap());
        for part in parts {
            out.push_str(part.split_once('m').expect("a colour code").1);
        }
        out
    }

    fn strings(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|l| clean(l)).collect()
    }

    #[test]
    fn a_small_map_in_shades() {
        let matrix = Matrix::from_rows(&[[1.0, 0.0, 0.5], [0.25, 0.75, f32::NAN]]);
        let text = heat_map(&matrix, &["das", "Haus"], &["the", "house", "."], 60, false);
        let expected = [
            "      the  house   .",
            " das ██████      ▒▒▒▒▒▒",
            "Haus ░░░░░░▓▓▓▓▓▓······",
            "0  ░▒▓█ 1   · no value",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn names_that_do_not_fit_are_written_downwards() {
        let matrix = Matrix::from_rows(&[[0.0, 1.0]; 1]);
        let text = draw(&matrix, &strings(&["x"]), &strings(&["abc", "extraordinarily"]), 80, Mode::Shades);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 12 + 2);
        assert_eq!(lines[0], "    e");
        assert_eq!(lines[9], "  a n");
        assert_eq!(lines[11], "  c …");
        assert_eq!(lines[12], "x   ██");
    }

    #[test]
    fn colours_are_set_once_for_a_run_and_reset_at_the_end() {
        let matrix = Matrix::from_rows(&[[0.0, 0.0, 1.0]]);
        let labels = strings(&["a", "b", "c"]);
        let text = draw(&matrix, &labels[..1], &labels, 40, Mode::Ansi256);
        let (low, high) = (ansi256(dark(0.0)), ansi256(dark(1.0)));
        assert_eq!(
            text.lines().nth(1).unwrap(),
            format!("a \x1b[48;5;{low}m      \x1b[48;5;{high}m   \x1b[0m")
        );
        let text = draw(&matrix, &labels[..1], &labels, 40, Mode::TrueColour);
        let [r, g, b] = dark(1.0);
        assert!(text.contains(&format!("\x1b[48;2;{r};{g};{b}m   \x1b[0m\n")));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let nasty = [
            "▁Haus",
            "你好世界",
            "e\u{301}\u{302}",
            "\u{301}",
            "a\tb",
            "\x1b[31mred",
            "❤️",
            "👩‍👩‍👧",
            "",
            "🇩🇪",
            "ﷺ",
        ];
        let long = "Donaudampfschifffahrtsgesellschaft".repeat(3);
        let mut rows: Vec<&str> = nasty.to_vec();
        rows.push(&long);
        for columns_count in [1, 2, 7, 12, 40, 130] {
            let names: Vec<&str> = (0..columns_count).map(|i| rows[i * 5 % rows.len()]).collect();
            let values = (0..rows.len() * columns_count).map(|i| (i % 13) as f32 / 12.0).collect();
            let matrix = Matrix::new(rows.len(), columns_count, values).unwrap();
            for width in (0..100).chain([200, 1000]) {
                for mode in [Mode::Shades, Mode::Ansi256, Mode::TrueColour] {
                    let text = draw(&matrix, &strings(&rows), &strings(&names), width.max(1), mode);
                    for line in text.lines() {
                        let line = plain(line);
                        assert!(columns(&line) <= width.max(1), "{width} {columns_count} {mode:?}: {line:?}");
                        assert!(!line.chars().any(char::is_control), "{line:?}");
                    }
                    assert!(text.lines().count() >= rows.len());
                }
            }
        }
    }

    #[test]
    fn a_wide_matrix_is_cut_into_blocks() {
        let matrix = Matrix::new(1, 25, vec![1.0; 25]).unwrap();
        let names: Vec<String> = (0..25).map(|_| "n".to_string()).collect();
        let text = draw(&matrix, &strings(&["r"]), &names, 12, Mode::Shades);
        let full: usize = text.lines().filter(|l| l.starts_with("r ")).map(|l| l.matches('█').count()).sum();
        assert_eq!(full, 25);
        assert_eq!(text.lines().filter(|l| l.starts_with("r ")).count(), 3);
    }

    #[test]
    fn odd_data_is_drawn() {
        let none: [&str; 0] = [];
        assert_eq!(heat_map(&Matrix::default(), &none, &none, 80, false), "(no data)\n");
        assert_eq!(heat_map(&Matrix::default(), &none, &none, 4, true), "(no…\n");
        let nan = Matrix::from_rows(&[[f32::NAN; 2]; 2]);
        assert!(heat_map(&nan, &none, &none, 80, false).contains("1 ······\n"));
        let constant = Matrix::from_rows(&[[0.5f32; 2]]);
        assert!(heat_map(&constant, &none, &none, 80, false).contains("0 ██████\n"));
        let infinite = Matrix::from_rows(&[[f32::INFINITY, f32::NEG_INFINITY, 0.0, 1.0]]);
        assert!(heat_map(&infinite, &none, &none, 80, false).contains("0 ███      ███\n"));
    }
}
