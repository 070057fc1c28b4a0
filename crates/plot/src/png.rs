//! Renders a scene as PNG: `resvg` draws its SVG on a white background.
//!
//! Labels use DejaVu Sans, which is embedded in the binary, so that a picture looks the same on
//! every machine, even on one without fonts. System fonts provide the characters that DejaVu lacks,
//! such as Chinese ones.

use std::sync::{Arc, LazyLock, OnceLock};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::{Database, ID, Source};
use resvg::usvg::{FontFamily, FontResolver, Options, Tree};

use super::scene::Scene;
use super::svg;
use crate::{Error, Result};

/// The maximum number of pixels: 64 million take 256 MB while drawing.
const MAX_PIXELS: f64 = 64e6;

/// The fonts of this machine.
pub(super) static FONTS: LazyLock<Fonts> = LazyLock::new(|| Fonts::new(Database::load_system_fonts));

/// The scene as a PNG file with `scale` pixels per unit of length.
pub(super) fn render(scene: &Scene, scale: f64, fonts: &Fonts) -> Result<Vec<u8>> {
    if !(scale.is_finite() && (0.1..=10.0).contains(&scale)) {
        let message = format!("{scale} is not between 0.1 and 10");
        return Err(Error::Config { field: "scale".to_string(), message });
    }
    let (width, height) = ((scene.width * scale).ceil().max(1.0), (scene.height * scale).ceil().max(1.0));
    if width * height > MAX_PIXELS {
        return Err(input(format!(
            "a picture of {width} × {height} pixels is too large; draw fewer maps, or write SVG"
        )));
    }
    let options = Options {
        fontdb: Arc::clone(&fonts.embedded),
        font_resolver: fonts.resolver(),
        ..Options::default()
    };
    let tree = Tree::from_str(&svg::render(scene), &options).map_err(|e| input(e.to_string()))?;
    let mut pixels = Pixmap::new(width as u32, height as u32)
        .ok_or_else(|| input(format!("no picture has {width} × {height} pixels")))?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(scale as f32, scale as f32), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| input(e.to_string()))
}

fn input(message: String) -> Error {
    Error::Input { operation: "drawing a PNG", message }
}

/// The embedded fonts, and the system fonts, which are loaded when a character needs them.
pub(super) struct Fonts {
    embedded: Arc<Database>,
    sans: ID,
    mono: ID,
    load_system: fn(&mut Database),
    /// The embedded fonts first, with the same ids, then the system fonts.
    all: OnceLock<Arc<Database>>,
}

impl Fonts {
    /// The embedded fonts, and those that `load_system` adds.
    pub(super) fn new(load_system: fn(&mut Database)) -> Self {
        let mut embedded = Database::new();
        let mut add = |font: &'static [u8]| embedded.load_font_source(Source::Binary(Arc::new(font)))[0];
        let (sans, mono) = (add(dejavu::sans::regular()), add(dejavu::sans_mono::regular()));
        Fonts { embedded: Arc::new(embedded), sans, mono, load_system, all: OnceLock::new() }
    }

    fn resolver(&self) -> FontResolver<'_> {
        let search = FontResolver::default_fallback_selector();
        FontResolver {
            select_font: Box::new(|font, _| {
                let mono = font.families().contains(&FontFamily::Monospace);
                Some(if mono { self.mono } else { self.sans })
            }),
            select_fallback: Box::new(move |c, used, fonts| {
                search(c, used, fonts).or_else(|| {
                    *fonts = Arc::clone(self.all.get_or_init(|| {
                        let mut all = Database::clone(&self.embedded);
                        (self.load_system)(&mut all);
                        Arc::new(all)
                    }));
                    search(c, used, fonts)
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests;
