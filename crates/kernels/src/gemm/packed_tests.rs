use super::*;
use crate::testing::{SIZES, assert_close, random, widen};
use crate::{Team, naive};

const SHAPES: [(usize, usize); 9] =
    [(1, 1), (3, 5), (16, 8), (17, 31), (33, 64), (40, 65), (64, 129), (100, 16), (5, 300)];

/// The same followed by a ReLU.
fn multiply_relu(w: &PackedB, x: &[f32], m: usize, bias: &[f32]) -> Vec<f32> {
    let (n, mut scratch) = (w.outputs(), RowScratch::default());
    let mut y = vec![f32::NAN; m * n];
    let rows = w.rows(Mat::new(x, m, w.inputs()), &mut scratch);
    w.matmul(rows, 0..n, Epilogue { bias: Some(bias), relu: true }, MatMut::new(&mut y, m, n));
    y
}

fn multiply(w: &PackedB, x: &[f32], m: usize, bias: Option<&[f32]>) -> Vec<f32> {
    let (n, mut scratch) = (w.outputs(), RowScratch::default());
    let mut y = vec![f32::NAN; m * n];
    let rows = w.rows(Mat::new(x, m, w.inputs()), &mut scratch);
    w.matmul(rows, 0..n, bias, MatMut::new(&mut y, m, n));
    y
}

/// `x·Wᵀ + bias` in f64.
fn wanted(x: &[f32], w: &[f32], (m, n, k): (usize, usize, usize), bias: &[f32]) -> Vec<f64> {
    let turned: Vec<f64> = (0..k * n).map(|i| f64::from(w[i % n * k + i / n])).collect();
    let mut y = naive::matmul(&widen(x), &turned, m, n, k);
    y.iter_mut().enumerate().for_each(|(i, y)| *y += f64::from(bias[i % n]));
    y
}

#[test]
fn a_relu_comes_after_the_whole_sum_and_the_bias() {
    for isa in Isa::available() {
        for (m, n, k) in [(1, 3, 5), (14, 40, 300), (25, 33, 600)] {
            let (w, x, bias) = (random(n * k, 1), random(m * k, 2), random(n, 3));
            let (values, scales) = quantize_rows(&w, k);
            for packed in [PackedB::f32(isa, &w, n, k), PackedB::int8(isa, &values, &scales, k)] {
                let plain = multiply(&packed, &x, m, Some(&bias));
                let want: Vec<f32> = plain.iter().map(|y| y.max(0.0)).collect();
                assert_eq!(multiply_relu(&packed, &x, m, &bias), want, "{isa} {m}×{n}×{k}");
                assert!(plain.iter().any(|y| *y < 0.0) && plain.iter().any(|y| *y > 0.0));
            }
        }
    }
}

#[test]
fn f32_agrees_with_the_naive_twin_at_every_size() {
    for isa in Isa::available() {
        for (n, k) in SHAPES {
            let (w, bias) = (random(n * k, 1), random(n, 2));
            let packed = PackedB::f32(isa, &w, n, k);
            for m in [0, 1, 2, 3, 4, 5, 6, 7, 13, 23] {
                let x = random(m * k, 3);
                let want = wanted(&x, &w, (m, n, k), &bias);
                assert_close(
                    &multiply(&packed, &x, m, Some(&bias)),
                    &want,
                    1e-5,
                    &format!("{isa} {m}×{n}×{k}"),
                );
            }
        }
    }
}

/// Integer weights that include ±127 have the scale 1: the result is the integer sum itself.
fn whole_weights(rows: usize, k: usize, seed: u64) -> Vec<f32> {
    let mut x: Vec<f32> = random(rows * k, seed).iter().map(|x| (x * 63.0).round()).collect();
    x.iter_mut()
        .step_by(k.max(1))
        .enumerate()
        .for_each(|(i, x)| *x = if i % 2 == 0 { 127.0 } else { -127.0 });
    x
}

/// The same holds for inputs that span a range of 127, wherever it lies.
fn whole_inputs(rows: usize, k: usize, seed: u64) -> Vec<f32> {
    let mut x: Vec<f32> = random(rows * k, seed).iter().map(|x| (x * 25.0).round()).collect();
    for (i, row) in x.chunks_mut(k.max(1)).enumerate() {
        let below = if k > 1 { [63.0, 50.0, 77.0][i % 3] } else { 0.0 };
        row[k - 1] = -below;
        row[0] = 127.0 - below;
    }
    x
}

#[test]
fn int8_gives_the_same_integers_everywhere() {
    for (n, k) in SHAPES {
        let w = whole_weights(n, k, 4);
        let (values, scales) = quantize_rows(&w, k);
        assert!(scales.iter().all(|&s| s == 1.0) && values.iter().zip(&w).all(|(&q, &w)| f32::from(q) == w));
        for m in [0, 1, 2, 3, 4, 5, 6, 7, 13] {
            let x = whole_inputs(m, k, 5);
            let want: Vec<f32> = wanted(&x, &w, (m, n, k), &vec![0.0; n]).iter().map(|&y| y as f32).collect();
            for isa in Isa::available() {
                let packed = PackedB::int8(isa, &values, &scales, k);
                assert_eq!(multiply(&packed, &x, m, None), want, "{isa} {m}×{n}×{k}");
            }
        }
    }
}

/// Inputs quantized like CTranslate2's, compared with plain loops.
#[test]
fn centred_inputs_give_the_sums_of_plain_loops_everywhere() {
    for (n, k) in SHAPES {
        let (values, scales) = quantize_rows(&random(n * k, 4), k);
        let bias = random(n, 6);
        for m in [0, 1, 2, 3, 4, 5, 6, 7, 13] {
            let mut x = random(m * k, 5);
            // Inputs after a ReLU, of one sign, of a different magnitude, all zeros.
            for (r, row) in x.chunks_exact_mut(k).enumerate() {
                let change: fn(f32) -> f32 =
                    [|x| x, |x: f32| x.max(0.0), |x: f32| -x.abs(), |x| x / 9.0, |_| 0.0][r % 5];
                row.iter_mut().for_each(|x| *x = change(*x));
            }
            let mut want = Vec::new();
            for x in x.chunks_exact(k) {
                let largest = x.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
                let a = if largest > 0.0 { 127.0 / largest } else { 127.0 };
                for (i, w) in values.chunks_exact(k).enumerate() {
                    let q = x.iter().map(|x| (x * a).round_ties_even() as i64);
                    let sum: i64 = q.zip(w).map(|(q, &w)| q * i64::from(w)).sum();
                    want.push((sum as f32).mul_add(1.0 / a * scales[i], bias[i]));
                }
            }
            for isa in Isa::available() {
                let packed = PackedB::int8_ctranslate2(isa, &values, &scales, k);
                let what = format!("{isa} {m}×{n}×{k}");
                let wide: Vec<f64> = want.iter().map(|&y| f64::from(y)).collect();
                assert_close(&multiply(&packed, &x, m, Some(&bias)), &wide, 1e-6, &what);
                let all: Vec<u32> = (0..n as u32).collect();
                assert!(!packed.has_own_bias());
                let chosen = packed.choose(&all, None);
                let (mut y, mut scratch) = (vec![f32::NAN; m * n], RowScratch::default());
                let rows = chosen.rows(Mat::new(&x, m, k), &mut scratch);
                let offsets: Vec<usize> = (0..=m).map(|i| i * n).collect();
                let lists = RowLists { offsets: &offsets, rows: &all.repeat(m) };
                chosen.matmul(rows, lists, Some(&bias), &mut y);
                assert_close(&y, &wide, 1e-6, &format!("{what}, chosen"));
            }
        }
    }
}

#[test]
fn inputs_are_rounded_in_the_same_way_everywhere() {
    let (m, n, k) = (9, 20, 77);
    let (values, scales) = quantize_rows(&random(n * k, 15), k);
    // Include rows of one sign, as after a ReLU.
    let mut x = random(m * k, 16);
    x[..k].iter_mut().for_each(|x| *x = x.max(0.0));
    x[k..2 * k].iter_mut().for_each(|x| *x = x.min(0.0));
    let portable = multiply(&PackedB::int8(Isa::PORTABLE, &values, &scales, k), &x, m, None);
    for isa in Isa::available() {
        assert_eq!(multiply(&PackedB::int8(isa, &values, &scales, k), &x, m, None), portable, "{isa}");
    }
}

/// Int8 weights of any size and scale, with inputs of any range: every result has the same bits on
/// every instruction set.
#[test]
fn int8_of_any_shape_has_the_same_bits_everywhere() {
    for seed in 0..150 {
        let key = crate::Key::new(seed);
        let below = |i: u32, n: u32| (key.bits(i) % n) as usize;
        let (m, n, k) = (1 + below(0, 40), 1 + below(1, 150), 1 + below(2, 700));
        // From 2⁻¹² to 2¹², all of one sign or around zero.
        let size = |i: u32| f32::powi(2.0, below(i, 25) as i32 - 12);
        let shift = [0.0, 2.0, -2.0, 0.5][below(3, 4)];
        let w: Vec<f32> = random(n * k, seed).iter().map(|x| x * size(4)).collect();
        let x: Vec<f32> = random(m * k, seed + 1_000).iter().map(|x| (x + shift) * size(5)).collect();
        let bias = random(n, seed + 2_000);
        let (values, scales) = quantize_rows(&w, k);
        let bits = |isa| -> Vec<u32> {
            let packed = PackedB::int8(isa, &values, &scales, k);
            multiply(&packed, &x, m, Some(&bias)).iter().map(|y| y.to_bits()).collect()
        };
        let portable = bits(Isa::PORTABLE);
        for isa in Isa::available() {
            assert!(bits(isa) == portable, "{isa} {m}×{n}×{k}, seed {seed}");
        }
    }
}

#[test]
fn the_largest_numbers_do_not_saturate() {
    let k = 2048;
    // All of one sign, and mixed, so that some steps can be added in 16 bits and others cannot.
    let columns: [fn(usize) -> f32; 3] =
        [|_| 127.0, |_| -127.0, |t| if t / 16 % 2 == 0 { 127.0 } else { [64.0, -64.0][t % 2] }];
    let w: Vec<f32> = columns.iter().flat_map(|w| (0..k).map(w)).collect();
    let (values, scales) = quantize_rows(&w, k);
    for isa in Isa::available() {
        let packed = PackedB::int8(isa, &values, &scales, k);
        for x in [127.0, -127.0] {
            let want: Vec<f32> = w.chunks(k).map(|w| w.iter().sum::<f32>() * x).collect();
            assert_eq!(multiply(&packed, &vec![x; k], 1, None), want, "{isa}");
        }
    }
}

#[test]
fn int8_is_near_the_exact_product() {
    for isa in Isa::available() {
        for (n, k) in SHAPES {
            let (w, bias, x) = (random(n * k, 6), random(n, 7), random(3 * k, 8));
            let (values, scales) = quantize_rows(&w, k);
            let y = multiply(&PackedB::int8(isa, &values, &scales, k), &x, 3, Some(&bias));
            for (i, (y, want)) in y.iter().zip(wanted(&x, &w, (3, n, k), &bias)).enumerate() {
                // An error of half a step of 2/127 in a weight and of a whole step of 4/127 in an
                // input, times values up to 2.
                let most = k as f64 * 2.0 * (5.0 / 127.0 + 0.002);
                assert!((f64::from(*y) - want).abs() <= most, "{isa} {n}×{k}: number {i} is {y}, not {want}");
            }
        }
    }
}

#[test]
fn rows_are_read_back() {
    for isa in Isa::available() {
        for (n, k) in SHAPES {
            let w = random(n * k, 9);
            let (values, scales) = quantize_rows(&w, k);
            let (single, bytes) = (PackedB::f32(isa, &w, n, k), PackedB::int8(isa, &values, &scales, k));
            let mut row = vec![0.0; k];
            for i in 0..n {
                single.read_row(i, &mut row);
                assert_eq!(row, w[i * k..][..k], "{isa}");
                bytes.read_row(i, &mut row);
                let want: Vec<f32> = values[i * k..][..k].iter().map(|&q| f32::from(q) * scales[i]).collect();
                assert_eq!(row, want, "{isa}");
            }
        }
    }
}

/// The products of each input with its own rows, given as rows of the matrix.
pub(super) fn multiply_chosen(
    w: &PackedB,
    x: &[f32],
    lists: &[&[u32]],
    bias: Option<&[f32]>,
) -> Vec<Vec<f32>> {
    let mut all: Vec<u32> = lists.concat();
    all.sort_unstable();
    all.dedup();
    // Reuse memory that held something else before.
    let larger: Vec<u32> = all.iter().copied().chain([0]).collect();
    let chosen = w.choose(&all, Some(w.choose(&larger, None)));
    assert_eq!((chosen.len(), chosen.is_empty()), (all.len(), all.is_empty()));
    let bias: Option<Vec<f32>> = bias.map(|bias| all.iter().map(|&row| bias[row as usize]).collect());
    let (mut offsets, mut rows) = (vec![0], Vec::new());
    for list in lists {
        rows.extend(list.iter().map(|row| all.binary_search(row).unwrap() as u32));
        offsets.push(rows.len());
    }
    let (mut scratch, mut y) = (RowScratch::default(), vec![f32::NAN; rows.len()]);
    let x = chosen.rows(Mat::new(x, lists.len(), w.inputs()), &mut scratch);
    chosen.matmul(x, RowLists { offsets: &offsets, rows: &rows }, bias.as_deref(), &mut y);
    offsets.windows(2).map(|w| y[w[0]..w[1]].to_vec()).collect()
}

/// Lists of 0, 1, 16, 17 and all rows, and one with gaps longer than a block.
pub(super) fn some_lists(n: u32) -> [Vec<u32>; 6] {
    [
        vec![],
        vec![n - 1],
        (3..19).collect(),
        (0..17).collect(),
        (0..n).collect(),
        (0..n).step_by(n as usize / 2).collect(),
    ]
}

#[test]
fn chosen_rows_give_the_same_numbers_as_the_whole_matrix() {
    for isa in Isa::available() {
        for (n, k) in [(1_100, 45), (70, 256), (70, 300), (70, 1)] {
            let lists = some_lists(n as u32);
            let lists = lists.each_ref().map(Vec::as_slice);
            let m = lists.len();
            let (w, x, bias) = (random(n * k, 17), random(m * k, 18), random(n, 19));
            let (values, scales) = quantize_rows(&w, k);
            let int8 = PackedB::int8(isa, &values, &scales, k);
            for (packed, exact) in [(PackedB::f32(isa, &w, n, k), false), (int8, true)] {
                let all = multiply(&packed, &x, m, Some(&bias));
                let chosen = multiply_chosen(&packed, &x, &lists, Some(&bias));
                for ((y, list), chosen) in all.chunks(n).zip(lists).zip(chosen) {
                    let want: Vec<f32> = list.iter().map(|&row| y[row as usize]).collect();
                    if exact {
                        assert_eq!(chosen, want, "{isa} {n}×{k}");
                    } else {
                        // Floats are added in a different order.
                        assert_close(&chosen, &widen(&want), 1e-4, &format!("{isa} {n}×{k}"));
                    }
                }
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others_nor_a_column_on_who_computes_it() {
    for isa in Isa::available() {
        let (m, n, k) = (11, 100, 70);
        let (w, x, bias) = (random(n * k, 10), random(m * k, 11), random(n, 12));
        let (values, scales) = quantize_rows(&w, k);
        for packed in [PackedB::f32(isa, &w, n, k), PackedB::int8(isa, &values, &scales, k)] {
            let whole = multiply(&packed, &x, m, Some(&bias));
            for r in 0..m {
                let one = multiply(&packed, &x[r * k..][..k], 1, Some(&bias));
                assert_eq!(one, whole[r * n..][..n], "{isa} row {r}");
            }
            for size in [1, 2, 3] {
                let (mut y, mut scratch) = (vec![0.0; m * n], RowScratch::default());
                let rows = packed.rows(Mat::new(&x, m, k), &mut scratch);
                packed.matmul_with(&mut Team::new(size), rows, Some(&bias[..]), MatMut::new(&mut y, m, n));
                assert_eq!(y, whole, "{isa}, a team of {size}");
            }
            let start = packed.panel();
            let (mut y, mut scratch) = (vec![0.0; m * (n - start)], RowScratch::default());
            let rows = packed.rows(Mat::new(&x, m, k), &mut scratch);
            packed.matmul(rows, start..n, Some(&bias[..]), MatMut::new(&mut y, m, n - start));
            for r in 0..m {
                assert_eq!(y[r * (n - start)..][..n - start], whole[r * n + start..(r + 1) * n]);
            }
        }
    }
}

#[test]
fn nan_and_infinity_stay_in_their_row() {
    for isa in Isa::available() {
        for &k in SIZES.iter().filter(|&&k| k > 0) {
            let (n, w) = (3, random(3 * k, 13));
            let (values, scales) = quantize_rows(&w, k);
            for non_finite in [f32::NAN, f32::INFINITY] {
                let mut x = random(2 * k, 14);
                x[k - 1] = non_finite;
                let y = multiply(&PackedB::int8(isa, &values, &scales, k), &x, 2, None);
                assert!(
                    y[..n].iter().all(|y| y.is_nan()) && y[n..].iter().all(|y| y.is_finite()),
                    "{isa} {k}"
                );
            }
            let zeros = multiply(&PackedB::int8(isa, &values, &scales, k), &vec![0.0; k], 1, None);
            assert_eq!(zeros, [0.0; 3], "{isa} {k}");
        }
    }
}
