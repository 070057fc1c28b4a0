//! Decodes pictures and checks their size, their colours, and that labels are drawn.

use resvg::tiny_skia::Pixmap;
use roxmltree::Document;

use super::*;
use crate::{Grid, HeatMap, LineChart, Matrix, Series, colour};

/// The RGB values of every pixel in row-major order, of an opaque picture.
struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<[u8; 3]>,
}

fn decode(file: &[u8]) -> Picture {
    let pixmap = Pixmap::decode_png(file).unwrap();
    let opaque = |p: &resvg::tiny_skia::PremultipliedColorU8| {
        assert_eq!(p.alpha(), 255);
        [p.red(), p.green(), p.blue()]
    };
    Picture {
        width: pixmap.width() as usize,
        height: pixmap.height() as usize,
        pixels: pixmap.pixels().iter().map(opaque).collect(),
    }
}

impl Picture {
    fn count(&self, colour: [u8; 3]) -> usize {
        self.pixels.iter().filter(|p| **p == colour).count()
    }

    /// The dark pixels in a rectangle, relative to its corner.
    fn ink(&self, (left, top): (f64, f64), (right, bottom): (f64, f64)) -> Vec<(usize, usize)> {
        let dark = |p: [u8; 3]| p.iter().all(|v| *v < 128);
        let (left, top) = (left.max(0.0) as usize, top.max(0.0) as usize);
        let places = (top..bottom as usize).flat_map(|y| (left..right as usize).map(move |x| (x, y)));
        let inked = places.filter(|(x, y)| dark(self.pixels[y * self.width + x]));
        inked.map(|(x, y)| (x - left, y - top)).collect()
    }
}

/// The fonts of a machine that has none, where loading system fonts fails the test.
fn embedded() -> Fonts {
    Fonts::new(|_| panic!("a character is missing in the embedded fonts"))
}

fn attention() -> HeatMap {
    HeatMap::new("Attention", Matrix::from_rows(&[[1.0, 0.0], [0.5, f32::NAN]]))
        .labels(&["das", "Haus"], &["the", "house"])
        .axes("target", "source")
        .scale_label("weight")
}

/// Each horizontal text of a scene: its position and size, in a picture with two pixels per unit.
fn labels(scene: &Scene) -> Vec<(String, (f64, f64), f64, &'static str)> {
    let svg = svg::render(scene);
    let document = Document::parse(&svg).unwrap();
    let texts = document.descendants().filter(|n| n.tag_name().name() == "text");
    let texts = texts.filter(|n| n.attribute("transform").is_none());
    let label = |n: roxmltree::Node<'_, '_>| {
        let number = |name| 2.0 * n.attribute(name).unwrap().parse::<f64>().unwrap();
        let anchor = match n.attribute("text-anchor") {
            None => "start",
            Some("middle") => "middle",
            Some(_) => "end",
        };
        (n.text().unwrap().to_string(), (number("x"), number("y")), number("font-size"), anchor)
    };
    texts.map(label).collect()
}

/// The dark pixels of each label; all labels must be drawn without system fonts.
fn label_ink(scene: &Scene) -> Vec<(String, Vec<(usize, usize)>)> {
    let picture = decode(&render(scene, 2.0, &embedded()).unwrap());
    assert_eq!((picture.width as f64, picture.height as f64), (scene.width * 2.0, scene.height * 2.0));
    let ink = |(text, (x, y), size, anchor): (String, (f64, f64), f64, &str)| {
        let wide = size * 0.45 * text.chars().count() as f64;
        let from = match anchor {
            "start" => x,
            "middle" => x - wide / 2.0,
            _ => x - wide,
        };
        let ink = picture.ink((from, y - size * 0.8), (from + wide, y + size * 0.2));
        assert!(ink.len() as f64 > size * wide * 0.04, "{text}: {} of {size} × {wide}", ink.len());
        (text, ink)
    };
    labels(scene).into_iter().map(ink).collect()
}

#[test]
fn labels_of_many_scripts_need_no_system_font() {
    let words = ["house", "maison", "дом", "σπίτι", "بيت", "בית", "տուն", "სახლი", "nhà ở", "▁ev"];
    let columns = ["a", "б", "ج", "ד", "ε", "é", "ы", "ż", "ñ", "ß"];
    let values = (0..100).map(|i| i as f32 / 100.0).collect();
    let map = HeatMap::new("Внимание · انتباه · קשב", Matrix::new(10, 10, values).unwrap())
        .labels(&words, &columns)
        .axes("цель", "مصدر");
    let ink = label_ink(&map.scene());
    // No label consists of the boxes that replace missing characters.
    for pair in ink[1..11].windows(2) {
        assert_ne!(pair[0].1, pair[1].1, "{} {}", pair[0].0, pair[1].0);
    }
    let chart = LineChart::new("Потери", "шаг", "نقصان")
        .series(Series::new("обучение", vec![(0.0, 9.0), (50.0, 5.0), (100.0, 3.0)]))
        .series(Series::new("تحقق", vec![(0.0, 8.0), (100.0, 2.0)]).dashed());
    let ink = label_ink(&chart.scene());
    for expected in ["Потери", "шаг", "обучение", "تحقق"] {
        assert!(ink.iter().any(|(text, _)| text == expected), "{expected}");
    }
    // It runs upward along the left edge, centred vertically.
    let picture = decode(&render(&chart.scene(), 1.0, &embedded()).unwrap());
    assert!(picture.ink((10.0, 190.0), (32.0, 240.0)).len() > 30);
}

#[test]
fn pictures_come_out_the_same_every_time() {
    let map = attention();
    assert_eq!(map.to_png(2.0).unwrap(), map.to_png(2.0).unwrap());
    assert_eq!(map.to_png(2.0).unwrap(), render(&map.scene(), 2.0, &embedded()).unwrap());
}

#[test]
fn fonts_of_the_system_draw_what_the_embedded_ones_lack() {
    let draw = |title: &str, load_system| {
        let scene = LineChart::new(title, "", "").scene();
        let picture = decode(&render(&scene, 2.0, &Fonts::new(load_system)).unwrap());
        picture.ink((30.0, 24.0), (100.0, 68.0))
    };
    // Without a suitable font, a box is drawn.
    assert!(!draw("你好", |_| ()).is_empty());
    assert_eq!(draw("你好", |_| ()), draw("世界", |_| ()));
    // DejaVu Serif acts as the system font: only it has these arrows.
    let with_serif: fn(&mut Database) = |fonts| fonts.load_font_data(dejavu::serif::regular().to_vec());
    assert_ne!(draw("⤀⤁", with_serif), draw("⤀⤁", |_| ()));
    assert_ne!(draw("⤀", with_serif), draw("⤁", with_serif));
    assert_eq!(draw("Aя", with_serif), draw("Aя", |_| ()));
}

#[test]
fn a_png_has_the_size_and_the_colours_of_its_map() {
    let map = attention();
    let scene = map.scene();
    for scale in [1, 2, 3] {
        let picture = decode(&map.to_png(scale as f64).unwrap());
        let expected = (scene.width as usize * scale, scene.height as usize * scale);
        assert_eq!((picture.width, picture.height), expected);
        assert_eq!(picture.pixels[0], [255, 255, 255]);
        // A cell is 26 × 26; the tolerance covers its frame and a step of the scale.
        let area = 26 * 26 * scale * scale;
        for colour in [colour::light(1.0), colour::light(0.0), colour::light(32.0 / 63.0), [205, 205, 205]] {
            let many = picture.count(colour);
            assert!((area * 9 / 10..area * 14 / 10).contains(&many), "{colour:?}: {many} of {area}");
        }
        assert!(picture.count([28, 36, 48]) > 40 * scale, "the labels are drawn");
    }
}

#[test]
fn png_text_lies_where_the_layout_put_it() {
    let map = HeatMap::new("", Matrix::from_rows(&[[0.0]])).labels(&["HHHH"], &["x"]);
    let picture = decode(&map.to_png(2.0).unwrap());
    let ink = picture.ink((0.0, 0.0), (90.0, picture.height as f64));
    // Four letters of 12 × 0.6 units from the margin of 16, at two pixels per unit.
    let (left, right) = (ink.iter().map(|p| p.0).min().unwrap(), ink.iter().map(|p| p.0).max().unwrap());
    assert!((32..38).contains(&left), "{left}");
    assert!((84..92).contains(&right), "{right}");
    let (top, bottom) = (ink.iter().map(|p| p.1).min().unwrap(), ink.iter().map(|p| p.1).max().unwrap());
    assert!((13..19).contains(&(bottom - top)), "{top} to {bottom}");
}

#[test]
fn line_charts_become_pixels_too() {
    let chart = LineChart::new("Loss", "step", "loss (nats)")
        .series(Series::new("training", vec![(0.0, 9.0), (50.0, 5.0), (100.0, 3.0)]))
        .series(Series::new("theory", vec![(0.0, 8.0), (100.0, 2.0)]).dashed().markers());
    let picture = decode(&chart.to_png(1.0).unwrap());
    assert_eq!((picture.width, picture.height), (720, 420));
    for i in 0..2 {
        assert!(
            picture.count(colour::series(i).0) > 300,
            "series {i}: {}",
            picture.count(colour::series(i).0)
        );
    }
}

#[test]
fn impossible_png_sizes_are_refused() {
    for scale in [0.0, -1.0, 11.0, f64::NAN, f64::INFINITY] {
        let message = attention().to_png(scale).unwrap_err().to_string();
        assert!(message.ends_with("is not between 0.1 and 10"), "{message}");
    }
    let many =
        Grid::new("", 100, vec![HeatMap::new("", Matrix::new(64, 64, vec![0.0; 4096]).unwrap()); 1000]);
    let message = many.to_png(4.0).unwrap_err().to_string();
    assert!(message.contains("too large"), "{message}");
}
