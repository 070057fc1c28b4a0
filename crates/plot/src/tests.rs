//! Tests of whole pictures: parses their SVG, and tries unusual data.

use roxmltree::{Document, Node};

use super::html::{Page, Table};
use super::*;

const NASTY: [&str; 8] =
    ["<b>&\"'", "你好世界", "e\u{301}", "🙂", "a\tb\u{1b}[0m\u{0}", "", "שלום\u{202E}", "]]>\u{FFFF}"];

/// Parses a picture, and checks the properties that every picture must have.
fn parse(svg: &str) -> Document<'_> {
    let document = Document::parse(svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "svg");
    assert_eq!(root.attribute("role"), Some("img"));
    let title = root.first_element_child().unwrap();
    assert_eq!(title.tag_name().name(), "title");
    assert_eq!(title.text(), root.attribute("aria-label"));
    let sides: Vec<f64> = root.attribute("viewBox").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    assert_eq!(sides[..2], [0.0, 0.0]);
    assert!(sides[2] >= 40.0 && sides[2] < 20_000.0 && sides[3] >= 40.0 && sides[3] < 20_000.0, "{sides:?}");
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!matches!(name, "script" | "image" | "use" | "a" | "foreignObject"), "{name}");
        for attribute in node.attributes() {
            assert!(
                !attribute.name().starts_with("on") && attribute.name() != "href",
                "{}",
                attribute.name()
            );
            assert!(
                !attribute.value().contains("NaN") || attribute.name() == "aria-label",
                "{}",
                attribute.value()
            );
            assert!(
                !attribute.value().contains("inf") || attribute.name() == "aria-label",
                "{}",
                attribute.value()
            );
        }
        // Everything lies within the picture.
        for (axis, side) in [("x", sides[2]), ("y", sides[3])] {
            if let Some(at) = node.attribute(axis).filter(|_| name == "text") {
                let at: f64 = at.parse().unwrap();
                assert!((0.0..=side).contains(&at), "{axis} {at} of {side}");
            }
        }
    }
    document
}

fn texts(document: &Document<'_>) -> Vec<String> {
    let texts = document.descendants().filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    texts.map(|n| n.text().unwrap_or_default().to_string()).collect()
}

fn count(document: &Document<'_>, name: &str) -> usize {
    document.descendants().filter(|n| n.tag_name().name() == name).count()
}

fn loss_chart() -> LineChart {
    LineChart::new("Loss", "step", "loss (nats)")
        .series(Series::new("training", vec![(0.0, 9.0), (50.0, 5.0), (100.0, 3.0)]))
        .series(Series::new("theory", vec![(0.0, 8.0), (100.0, 2.0)]).dashed().markers())
}

#[test]
fn a_line_chart_has_axes_units_legend_and_lines() {
    let svg = loss_chart().to_svg();
    let document = parse(&svg);
    let texts = texts(&document);
    for expected in
        ["Loss", "step", "loss (nats)", "training", "theory", "0", "2", "4", "6", "8", "10", "20", "100"]
    {
        assert!(texts.iter().any(|t| t == expected), "{expected} is not among {texts:?}");
    }
    let lines: Vec<&str> = document
        .descendants()
        .filter(|n| n.tag_name().name() == "polyline")
        .filter_map(|n| n.attribute("class"))
        .filter(|c| c.starts_with('s'))
        .collect();
    // Each appears twice: in the legend, and in the plot.
    assert_eq!(lines, ["s0", "s1 d", "s0", "s1 d"]);
    assert_eq!(count(&document, "polygon"), 3);
}

#[test]
fn points_stand_where_their_numbers_say() {
    let mut chart =
        LineChart::new("", "", "").series(Series::new("", vec![(0.0, 0.0), (5.0, 5.0), (10.0, 10.0)]));
    let middle = |chart: &LineChart| {
        let svg = chart.to_svg();
        let document = parse(&svg);
        let line = document.descendants().find(|n| n.attribute("class") == Some("s0")).unwrap();
        let points: Vec<f64> =
            line.attribute("points").unwrap().split([' ', ',']).map(|v| v.parse().unwrap()).collect();
        ((points[2] - points[0]) / (points[4] - points[0]), (points[3] - points[1]) / (points[5] - points[1]))
    };
    let (x, y) = middle(&chart);
    assert!((x - 0.5).abs() < 1e-3 && (y - 0.5).abs() < 1e-3, "{x} {y}");
    chart.series[0].points = vec![(1.0, 1.0), (10.0, 100.0), (100.0, 1e4)];
    let (x, y) = middle(&chart.clone().log_x().log_y());
    assert!((x - 0.5).abs() < 1e-3 && (y - 0.5).abs() < 1e-3, "{x} {y}");
    let (x, y) = middle(&chart);
    assert!((x - 9.0 / 99.0).abs() < 1e-3 && (y - 99.0 / 9999.0).abs() < 2e-3, "{x} {y}");
}

#[test]
fn what_a_chart_leaves_out_it_says() {
    let odd = vec![(1.0, 1.0), (2.0, f64::NAN), (3.0, -1.0), (4.0, 0.0), (5.0, 2.0)];
    let svg = LineChart::new("", "", "").log_y().series(Series::new("", odd)).to_svg();
    assert!(svg.contains("not shown: 1 point not finite, 2 points not above zero"));
    assert!(!loss_chart().to_svg().contains("not shown"));
}

#[test]
fn odd_series_are_drawn() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases = [
        vec![],
        vec![(1.0, 1.0)],
        vec![(0.0, 0.0)],
        vec![(nan, nan)],
        vec![(inf, -inf), (1.0, inf)],
        vec![(1.0, 5.0), (2.0, 5.0)],
        vec![(1.0, f64::MAX), (2.0, f64::MIN)],
        vec![(f64::MIN_POSITIVE, 1e-320), (1e-310, 1e308)],
        vec![(-3.0, -7.0), (-2.0, -7.0 + 1e-15)],
        vec![(5.0, 1.0), (1.0, 2.0), (3.0, 0.0)],
    ];
    for points in cases {
        for (log_x, log_y) in [(false, false), (true, false), (false, true), (true, true)] {
            for size in [(720.0, 420.0), (0.0, -5.0), (nan, inf)] {
                let mut chart = LineChart::new(NASTY[0], NASTY[4], NASTY[1])
                    .series(Series::new(NASTY[7], points.clone()).markers());
                (chart.x.log, chart.y.log, chart.size) = (log_x, log_y, size);
                parse(&chart.to_svg());
                chart.x.range = Some((nan, -1.0));
                chart.y.range = Some((2.0, 1.0));
                chart.y.ticks = vec![nan, 1.5, inf];
                parse(&chart.to_svg());
            }
        }
    }
    let none = LineChart::new("", "", "").to_svg();
    assert!(texts(&parse(&none)).contains(&"no data".to_string()));
}

#[test]
fn many_points_make_no_large_file() {
    let points: Vec<(f64, f64)> = (0..200_000).map(|i| (f64::from(i), f64::from(i % 97))).collect();
    let svg = LineChart::new("", "", "").series(Series::new("", points)).to_svg();
    assert!(svg.len() < 60_000, "{}", svg.len());
}

fn attention() -> HeatMap {
    HeatMap::new("Attention", Matrix::from_rows(&[[1.0, 0.0], [0.5, f32::NAN]]))
        .labels(&["das", "Haus"], &["the", "house"])
        .axes("target", "source")
        .scale_label("weight")
}

#[test]
fn a_heat_map_has_labels_scale_and_a_tip_for_each_cell() {
    let svg = attention().to_svg();
    let document = parse(&svg);
    let texts = texts(&document);
    for expected in
        ["Attention", "das", "Haus", "the", "house", "target", "source", "weight", "no value", "0", "1.0"]
    {
        assert!(texts.iter().any(|t| t == expected), "{expected} is not among {texts:?}");
    }
    let cells: Vec<(&str, &str)> = document
        .descendants()
        .filter(|n| n.tag_name().name() == "rect")
        .filter_map(|n| Some((n.attribute("class")?, n.first_element_child()?.text()?)))
        .collect();
    let expected = [
        ("h63", "das · the: 1"),
        ("h0", "das · house: 0"),
        ("h32", "Haus · the: 0.5"),
        ("none", "Haus · house: NaN"),
    ];
    assert_eq!(cells, expected);
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn values_are_written_into_their_cells() {
    let map = HeatMap::new("", Matrix::from_rows(&[[0.123, 0.456], [-0.5, 0.0]])).values();
    let texts = texts(&parse(&map.to_svg()));
    for expected in ["0.12", "0.46", "−0.50", "0"] {
        assert!(texts.iter().any(|t| t == expected), "{expected} is not among {texts:?}");
    }
}

#[test]
fn nasty_labels_stay_text() {
    let values = vec![0.5; 64];
    let map = HeatMap::new(NASTY[0], Matrix::new(8, 8, values).unwrap())
        .labels(&NASTY, &NASTY)
        .axes(NASTY[4], NASTY[6])
        .scale_label(NASTY.concat().repeat(9));
    let svg = map.to_svg();
    let texts = texts(&parse(&svg));
    assert_eq!(texts.iter().filter(|t| *t == "<b>&\"'").count(), 3);
    assert!(texts.contains(&"a␉b␛[0m␀".to_string()));
    assert!(texts.contains(&"你好世界".to_string()));
    assert_eq!(map.to_png(1.0).is_ok(), cfg!(feature = "png"));
    let grid = Grid::new(NASTY.concat(), 2, vec![map.clone(), map.clone(), map]).scale_label(NASTY[0]);
    parse(&grid.to_svg());
    assert_eq!(grid.to_png(1.0).is_ok(), cfg!(feature = "png"));
}

#[test]
fn odd_matrices_are_drawn() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let cases = [
        Matrix::default(),
        Matrix::new(0, 5, vec![]).unwrap(),
        Matrix::new(5, 0, vec![]).unwrap(),
        Matrix::from_rows(&[[nan; 3]; 2]),
        Matrix::from_rows(&[[inf, -inf, nan]]),
        Matrix::from_rows(&[[7.0; 4]; 4]),
        Matrix::from_rows(&[[f32::MAX, f32::MIN]]),
        Matrix::from_rows(&[[1e-45, 0.0]]),
        Matrix::new(1, 3000, vec![0.1; 3000]).unwrap(),
        Matrix::new(2500, 2, vec![-0.1; 5000]).unwrap(),
    ];
    for matrix in &cases {
        for range in [None, Some((nan, inf)), Some((1.0, 1.0)), Some((2.0, -2.0))] {
            let mut map = HeatMap { values: true, range, ..HeatMap::new("odd", matrix.clone()) };
            parse(&map.to_svg());
            assert_eq!(map.to_png(0.5).is_ok(), cfg!(feature = "png"));
            map = map.labels(&["only one"], &["and", "two"]);
            parse(&map.to_svg());
        }
    }
    let maps: Vec<HeatMap> = cases.iter().map(|m| HeatMap::new("map", m.clone())).collect();
    for columns in [0, 1, 3, 100] {
        let grid = Grid::new("", columns, maps.clone());
        parse(&grid.clone().own_scales().to_svg());
        parse(&grid.to_svg());
    }
    let none = Grid::new("", 4, vec![]);
    assert!(texts(&parse(&none.to_svg())).contains(&"no data".to_string()));
    assert!(HeatMap::new("", cases[8].clone()).to_svg().contains("each cell is the mean of 1 × 3 values"));
}

#[test]
fn a_grid_names_every_map_and_repeats_no_labels() {
    let maps =
        (0..6).map(|i| HeatMap { title: format!("layer {} head {}", i / 3 + 1, i % 3 + 1), ..attention() });
    let grid = Grid::new("All heads", 3, maps.collect()).scale_label("weight");
    let svg = grid.to_svg();
    let document = parse(&svg);
    let texts = texts(&document);
    let times = |text: &str| texts.iter().filter(|t| *t == text).count();
    assert_eq!(texts.iter().filter(|t| t.starts_with("layer ")).count(), 6);
    assert_eq!((times("das"), times("Haus")), (2, 2));
    assert_eq!((times("the"), times("house")), (3, 3));
    assert_eq!((times("weight"), times("no value")), (1, 1));
    // One group for the scale and one for each map.
    assert_eq!(count(&document, "g"), 7);
}

#[test]
#[cfg(not(feature = "png"))]
fn without_the_feature_a_png_names_it_and_what_works() {
    let expected = "PNG needs the cargo feature `png`, which this build lacks; SVG and HTML work without it";
    assert_eq!(loss_chart().to_png(1.0).unwrap_err().to_string(), expected);
    assert_eq!(attention().to_png(1.0).unwrap_err(), Error::NoPng);
}

#[test]
fn a_page_stands_alone_and_escapes_its_text() {
    let page = Page::new("A <title> & more")
        .heading("Head")
        .paragraph("1 < 2 & \u{1b}\u{0}")
        .table(
            Table::new(&["name", "BLEU"])
                .row(&["a <b>", "31.6"])
                .row(&["c"])
                .row(&["d", "−1,234.5"])
                .caption("T"),
        )
        .table(Table::default())
        .figure(loss_chart().to_svg(), "Figure <1>")
        .preformatted("two\n\tlines")
        .links(&[("a/b.html?x=1:2", "fine"), ("javascript:alert(1)", "script"), ("\"><script>", "quote")])
        .render();
    // With void elements closed, our pages are valid XML, so the parser can check their nesting.
    let xml = page.replace("<!DOCTYPE html>\n", "");
    let xml =
        xml.lines().map(|l| if l.starts_with("<meta") { l.replace("\">", "\"/>") } else { l.to_string() });
    let xml = xml.collect::<Vec<_>>().join("\n");
    let document = Document::parse(&xml).unwrap_or_else(|e| panic!("{e}: {xml}"));
    let named =
        |name: &str| document.descendants().filter(|n| n.tag_name().name() == name).collect::<Vec<_>>();
    assert_eq!(named("h1")[0].text(), Some("A <title> & more"));
    assert_eq!(named("p")[0].text(), Some("1 < 2 & ␛␀"));
    assert_eq!(named("svg").len(), 1);
    assert_eq!(named("script").len(), 0);
    assert_eq!(named("pre")[0].text(), Some("two\n\tlines"));
    let cells: Vec<_> = named("td").iter().map(|n| (n.text().unwrap_or(""), n.attribute("class"))).collect();
    let n = Some("n");
    assert_eq!(cells, [("a <b>", None), ("31.6", n), ("c", None), ("", n), ("d", None), ("−1,234.5", n)]);
    let links: Vec<_> = named("a").iter().map(|a| a.attribute("href").unwrap()).collect();
    assert_eq!(links, ["a/b.html?x=1:2", "\"><script>"]);
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("src=") && !page.contains("@import") && !page.contains("url("));
}
