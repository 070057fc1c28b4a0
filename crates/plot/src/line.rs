//! Prepares a series for drawing: splits it at gaps, reduces the number of points, and clips it.

/// A rectangle of the picture: left, top, right, bottom.
pub(super) type Area = (f64, f64, f64, f64);

/// The runs of points to connect; NaN separates them.
pub(super) fn runs(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    points
        .chunk_by(|a, b| placed(*a) && placed(*b))
        .filter(|run| run.iter().all(|p| placed(*p)))
        .map(<[_]>::to_vec)
        .collect()
}

fn placed((x, y): (f64, f64)) -> bool {
    x.is_finite() && y.is_finite()
}

/// Reduces a run to the points that pixels can show: of all points in a pixel column, the first,
/// the lowest, the highest and the last, so that no spike is lost.
pub(super) fn thin(run: Vec<(f64, f64)>, width: f64) -> Vec<(f64, f64)> {
    if run.len() as f64 <= width * 4.0 || run.windows(2).any(|w| w[1].0 < w[0].0) {
        return run;
    }
    let mut out = Vec::new();
    for column in run.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let extreme = |sign: f64| {
            let key = |i: &usize| column[*i].1 * sign;
            (0..column.len()).min_by(|a, b| key(a).total_cmp(&key(b))).unwrap_or(0)
        };
        let mut keep = [0, extreme(1.0), extreme(-1.0), column.len() - 1];
        keep.sort_unstable();
        for (i, at) in keep.iter().enumerate() {
            if i == 0 || keep[i - 1] != *at {
                out.push(column[*at]);
            }
        }
    }
    out
}

/// The parts of a run that lie within the area.
pub(super) fn clip(run: &[(f64, f64)], area: Area) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    for pair in run.windows(2) {
        let Some((a, b)) = clip_segment(pair[0], pair[1], area) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&a) => part.push(b),
            _ => parts.push(vec![a, b]),
        }
    }
    parts
}

/// The running mean over `window` points on each side, which shows the trend of a noisy curve.
/// Values that are not finite are excluded; if none is left, the result is NaN.
pub fn smooth(points: &[(f64, f64)], window: usize) -> Vec<(f64, f64)> {
    // With prefix sums, a mean takes one subtraction for any window size.
    let mut sums = vec![(0.0, 0usize)];
    for &(_, y) in points {
        let (sum, count) = sums[sums.len() - 1];
        sums.push(if y.is_finite() { (sum + y, count + 1) } else { (sum, count) });
    }
    let mean = |i: usize| {
        let (from, to) =
            (sums[i.saturating_sub(window)], sums[(i + 1).saturating_add(window).min(points.len())]);
        (to.0 - from.0) / (to.1 - from.1) as f64
    };
    points.iter().enumerate().map(|(i, p)| (p.0, mean(i))).collect()
}

/// Whether a point lies within the area, edges included.
pub(super) fn inside((x, y): (f64, f64), (left, top, right, bottom): Area) -> bool {
    (left - 0.01..=right + 0.01).contains(&x) && (top - 0.01..=bottom + 0.01).contains(&y)
}

/// The Liang–Barsky algorithm: the part of a segment between the parameters at which it enters and
/// leaves the area.
fn clip_segment(a: (f64, f64), b: (f64, f64), area: Area) -> Option<((f64, f64), (f64, f64))> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (delta, room) in [(-dx, a.0 - area.0), (dx, area.2 - a.0), (-dy, a.1 - area.1), (dy, area.3 - a.1)] {
        if delta == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if delta < 0.0 {
            enter = enter.max(room / delta);
        } else {
            leave = leave.min(room / delta);
        }
    }
    if enter > leave {
        return None;
    }
    let at = |t: f64| {
        if t == 0.0 {
            a
        } else if t == 1.0 {
            b
        } else {
            (a.0 + t * dx, a.1 + t * dy)
        }
    };
    Some((at(enter), at(leave)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_where_there_is_no_number() {
        let nan = f64::NAN;
        let found = runs(&[
            (0.0, 1.0),
            (1.0, 1.0),
            (2.0, nan),
            (3.0, 1.0),
            (nan, 1.0),
            (5.0, f64::INFINITY),
            (6.0, 2.0),
        ]);
        assert_eq!(found, [vec![(0.0, 1.0), (1.0, 1.0)], vec![(3.0, 1.0)], vec![(6.0, 2.0)]]);
        assert!(runs(&[]).is_empty());
    }

    #[test]
    fn thinning_keeps_the_spikes() {
        let mut run: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64 / 1000.0, 1.0)).collect();
        run[43_210].1 = 99.0;
        run[50_001].1 = -7.0;
        let thinned = thin(run, 100.0);
        assert!(thinned.len() <= 400, "{}", thinned.len());
        assert!(thinned.contains(&(43.21, 99.0)));
        assert!(thinned.contains(&(50.001, -7.0)));
        assert_eq!(thinned[0].0, 0.0);
        assert_eq!(thinned[thinned.len() - 1].0, 99.999);
        let short = vec![(0.0, 1.0), (0.1, 2.0)];
        assert_eq!(thin(short.clone(), 100.0), short);
    }

    #[test]
    fn smoothing_is_a_running_mean() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 6.0), (3.0, f64::NAN), (4.0, f64::NAN), (5.0, f64::NAN)];
        let smoothed = smooth(&points, 1);
        assert_eq!(smoothed[..4], [(0.0, 1.5), (1.0, 3.0), (2.0, 4.0), (3.0, 6.0)]);
        assert!(smoothed[5].1.is_nan());
        assert_eq!(smooth(&points[..3], 0), points[..3]);
        assert_eq!(smooth(&points[..3], usize::MAX)[0].1, 3.0);
        assert!(smooth(&[], 5).is_empty());
    }

    #[test]
    fn clipping_cuts_at_the_edges() {
        let area = (0.0, 0.0, 10.0, 10.0);
        assert_eq!(
            clip(&[(-5.0, 5.0), (5.0, 5.0), (15.0, 5.0)], area),
            [[(0.0, 5.0), (5.0, 5.0), (10.0, 5.0)]]
        );
        assert!(clip(&[(-5.0, -5.0), (-1.0, 20.0)], area).is_empty());
        let around = clip(&[(1.0, 1.0), (1.0, 20.0), (2.0, 20.0), (2.0, 1.0)], area);
        assert_eq!(around, [[(1.0, 1.0), (1.0, 10.0)], [(2.0, 10.0), (2.0, 1.0)]]);
        assert!(inside((10.0, 0.0), area) && !inside((10.1, 0.0), area));
    }
}
