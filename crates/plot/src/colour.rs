//! Colours: the sequential palettes of heat maps, computed in OKLCH so that equal steps look equal,
//! and the hues of series.

pub(super) type Rgb = [u8; 3];

/// The number of colour levels in heat maps: each is a class in the SVG, and there are more than
/// the eye can distinguish.
pub(super) const LEVELS: usize = 64;

/// The number of series with distinct colours.
pub(super) const SERIES: usize = 8;

/// The chroma and hue of the series colours on a light background; a dark background uses the same
/// hues, but lighter.
const HUES: [(f64, f64); SERIES] = [
    (0.14, 255.0),
    (0.15, 50.0),
    (0.13, 155.0),
    (0.16, 310.0),
    (0.18, 20.0),
    (0.10, 205.0),
    (0.10, 90.0),
    (0.03, 260.0),
];

/// From nearly white to dark blue, for a light background. `t` in 0..=1.
pub(super) fn light(t: f64) -> Rgb {
    let t = t.clamp(0.0, 1.0);
    oklch(0.975 - 0.665 * t, 0.15 * (1.0 - (1.0 - t).powi(3)) * (1.0 - 0.2 * t), 170.0 + 105.0 * t)
}

/// From nearly black to bright yellow, for a dark background. `t` in 0..=1.
pub(super) fn dark(t: f64) -> Rgb {
    let t = t.clamp(0.0, 1.0);
    oklch(0.25 + 0.67 * t, 0.045 + 0.11 * (t * 3.0).min(1.0), 290.0 - 190.0 * t)
}

/// The colour of series `i` on a light background, and on a dark one.
pub(super) fn series(i: usize) -> (Rgb, Rgb) {
    let (chroma, hue) = HUES[i % SERIES];
    (oklch(0.56, chroma, hue), oklch(0.78, chroma * 0.85, hue))
}

pub(super) fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The nearest colour of the 6×6×6 cube and the grey ramp that every terminal with 256 colours has.
pub(super) fn ansi256([r, g, b]: Rgb) -> u8 {
    const STEPS: [i32; 6] = [0, 95, 135, 175, 215, 255];
    let channels = [i32::from(r), i32::from(g), i32::from(b)];
    let near = channels.map(|v| (0..6).min_by_key(|&i| (STEPS[i] - v).abs()).unwrap_or(0));
    let distance = |colour: [i32; 3]| (0..3).map(|i| (colour[i] - channels[i]).pow(2)).sum::<i32>();
    let grey = ((channels.iter().sum::<i32>() / 3 - 8 + 5) / 10).clamp(0, 23);
    if distance([8 + 10 * grey; 3]) < distance(near.map(|i| STEPS[i])) {
        232 + grey as u8
    } else {
        (16 + 36 * near[0] + 6 * near[1] + near[2]) as u8
    }
}

/// The sRGB colour with this lightness (0..1), chroma and hue (degrees); the chroma is reduced
/// until the colour is in gamut.
fn oklch(lightness: f64, mut chroma: f64, hue: f64) -> Rgb {
    let (sin, cos) = hue.to_radians().sin_cos();
    loop {
        let linear = oklab_to_linear(lightness, chroma * cos, chroma * sin);
        if chroma < 1e-3 || linear.iter().all(|v| (-1e-4..=1.0001).contains(v)) {
            return linear.map(|v| (gamma(v.clamp(0.0, 1.0)) * 255.0).round() as u8);
        }
        chroma *= 0.97;
    }
}

/// OKLab to linear sRGB, with the matrices of Ottosson's definition (2020).
fn oklab_to_linear(l: f64, a: f64, b: f64) -> [f64; 3] {
    let long = (l + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let medium = (l - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let short = (l - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    [
        4.076_741_662_1 * long - 3.307_711_591_3 * medium + 0.230_969_929_2 * short,
        -1.268_438_004_6 * long + 2.609_757_401_1 * medium - 0.341_319_396_5 * short,
        -0.004_196_086_3 * long - 0.703_418_614_7 * medium + 1.707_614_701_0 * short,
    ]
}

fn gamma(v: f64) -> f64 {
    if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG defines it.
    fn luminance(colour: Rgb) -> f64 {
        let linear = colour.map(|v| {
            let v = f64::from(v) / 255.0;
            if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn oklch_of_known_colours() {
        assert_eq!(oklch(1.0, 0.0, 0.0), [255, 255, 255]);
        assert_eq!(oklch(0.0, 0.0, 0.0), [0, 0, 0]);
        // sRGB red is L 0.62796, C 0.25768, h 29.234 in OKLCH.
        assert_eq!(oklch(0.62796, 0.25768, 29.234), [255, 0, 0]);
    }

    #[test]
    fn palettes_change_lightness_in_one_direction_at_every_level() {
        let levels: Vec<f64> = (0..LEVELS).map(|i| i as f64 / (LEVELS - 1) as f64).collect();
        for pair in levels.windows(2) {
            assert!(luminance(light(pair[0])) > luminance(light(pair[1])));
            assert!(luminance(dark(pair[0])) < luminance(dark(pair[1])));
        }
        assert!(contrast(light(0.0), light(1.0)) > 8.0);
        assert!(contrast(dark(0.0), dark(1.0)) > 8.0);
        assert_eq!(light(-3.0), light(0.0));
        assert_eq!(light(7.0), light(1.0));
    }

    #[test]
    fn series_stand_out_from_their_ground() {
        for i in 0..SERIES {
            let (on_light, on_dark) = series(i);
            assert!(contrast(on_light, [255; 3]) > 3.5, "{i}: {on_light:?}");
            assert!(contrast(on_dark, [20, 24, 31]) > 6.0, "{i}: {on_dark:?}");
        }
    }

    #[test]
    fn nearest_terminal_colours() {
        assert_eq!(ansi256([0, 0, 0]), 16);
        assert_eq!(ansi256([255, 255, 255]), 231);
        assert_eq!(ansi256([255, 0, 0]), 196);
        assert_eq!(ansi256([128, 128, 128]), 244);
    }
}
