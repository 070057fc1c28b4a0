//! Matrices with fixed multipliers, compared with Bergamot's expression in plain loops: bitwise
//! equal on every instruction set.

use super::*;
use crate::Team;
use crate::mapped::Int8Values;
use crate::testing::random;

const SHAPES: [(usize, usize); 8] =
    [(1, 1), (3, 5), (16, 8), (17, 31), (33, 64), (40, 65), (100, 16), (21, 300)];

/// A layer as stored in a model file.
struct Layer {
    values: Vec<i8>,
    multipliers: Vec<f32>,
    input: Option<f32>,
    bias: Option<Vec<f32>>,
    k: usize,
}

impl Layer {
    fn random(n: usize, k: usize, size: f32, seed: u64) -> Self {
        let values = random(n * k, seed).iter().map(|x| (x * size).round() as i8).collect();
        let multipliers = random(n, seed + 1).iter().map(|x| 40.0 + 10.0 * x).collect();
        Layer { values, multipliers, input: Some(29.3), bias: Some(random(n, seed + 2)), k }
    }

    fn pack(&self, isa: Isa) -> PackedB {
        let Layer { values, multipliers, input, bias, k } = self;
        let scales = MarianScales { multipliers, input: *input, bias: bias.as_deref() };
        PackedB::int8_fixed(isa, values, scales, *k)
    }

    /// The naive twin: integers in i64, floats in the documented order.
    fn twin(&self, x: &[f32]) -> Vec<f32> {
        let mut y = Vec::new();
        for x in x.chunks_exact(self.k) {
            let largest = x.iter().fold(0.0, |m: f32, x| m.max(x.abs()));
            let a = self.input.unwrap_or(if largest > 0.0 { 127.0 / largest } else { 127.0 });
            let q: Vec<i64> =
                x.iter().map(|x| (x * a).round_ties_even().clamp(-127.0, 127.0) as i64).collect();
            for (i, w) in self.values.chunks_exact(self.k).enumerate() {
                let m = self.multipliers[i];
                let sum: i64 = q.iter().zip(w).map(|(q, &w)| (q + 127) * i64::from(w)).sum();
                let total: i64 = w.iter().map(|&w| i64::from(w)).sum();
                let correction = total as f32 * (-((127.0 / a) * (127.0 / m)) / 127.0);
                let offset = self.bias.as_ref().map_or(correction, |bias| correction + bias[i]);
                y.push(sum as f32 * (1.0 / (a * m)) + offset);
            }
        }
        y
    }
}

fn multiply(w: &PackedB, x: &[f32], relu: bool) -> Vec<f32> {
    let (m, n, mut scratch) = (x.len() / w.inputs(), w.outputs(), RowScratch::default());
    let mut y = vec![f32::NAN; m * n];
    let rows = w.rows(Mat::new(x, m, w.inputs()), &mut scratch);
    w.matmul(rows, 0..n, Epilogue { bias: None, relu }, MatMut::new(&mut y, m, n));
    y
}

fn assert_same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!(got.to_bits(), want.to_bits(), "{what}: number {i} is {got}, not {want}");
    }
}

#[test]
fn products_are_bergamots_to_the_bit() {
    for isa in Isa::available() {
        for (n, k) in SHAPES {
            // Small weights, whose products are added in 16 bits, and weights that exercise all
            // paths.
            for size in [12.0, 30.0, 63.5] {
                let mut layer = Layer::random(n, k, size, 1);
                for input in [Some(29.3), Some(500.0), None] {
                    layer.input = input;
                    let packed = layer.pack(isa);
                    for m in [0, 1, 2, 3, 4, 7, 13] {
                        let mut x = random(m * k, 5);
                        // Inputs after a ReLU, of one sign, of a different magnitude, all zeros.
                        for (r, row) in x.chunks_exact_mut(k).enumerate() {
                            let change: fn(f32) -> f32 =
                                [|x| x, |x: f32| x.max(0.0), |x: f32| -x.abs(), |x| x / 9.0, |_| 0.0][r % 5];
                            row.iter_mut().for_each(|x| *x = change(*x));
                        }
                        let want = layer.twin(&x);
                        let what = format!("{isa} {m}×{n}×{k}, weights to {size}, input {input:?}");
                        assert_same(&multiply(&packed, &x, false), &want, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn the_largest_numbers_do_not_saturate() {
    let k = 2048;
    let columns: [fn(usize) -> i8; 5] = [
        |_| 127,
        |_| -127,
        |_| -128,
        |t| if t / 16 % 2 == 0 { 127 } else { [64, -64][t % 2] },
        // 254 · 129 still fits 16 bits.
        |t| [127, 2, 127, 2, 0, 0, 0, 0][t % 8],
    ];
    let values: Vec<i8> = columns.iter().flat_map(|w| (0..k).map(w)).collect();
    let layer = Layer { values, multipliers: vec![1.0; 5], input: Some(1.0), bias: None, k };
    for isa in Isa::available() {
        let packed = layer.pack(isa);
        let inputs: [fn(usize) -> f32; 5] = [
            |_| 127.0,
            |_| -127.0,
            |t| [127.0, -127.0][t / 2 % 2],
            |t| if t == 0 { -127.0 } else { 127.0 },
            // Beyond the range of any integer.
            |t| [1e30, -1e30][t % 2],
        ];
        for input in inputs {
            let x: Vec<f32> = (0..k).map(input).collect();
            assert_same(&multiply(&packed, &x, false), &layer.twin(&x), isa.name());
        }
    }
}

#[test]
fn ties_are_rounded_to_even() {
    let layer = Layer { values: vec![1], multipliers: vec![1.0], input: Some(0.5), bias: None, k: 1 };
    for isa in Isa::available() {
        for x in [1.0, 3.0, 5.0, -1.0, -3.0, -5.0, 253.0, 255.0, -253.0, -255.0] {
            assert_same(&multiply(&layer.pack(isa), &[x], false), &layer.twin(&[x]), &format!("{isa} {x}"));
        }
    }
}

/// Also with weights so large that few products can be added in 16 bits, and with rows where only
/// some can.
#[test]
fn chosen_rows_and_tables_are_the_whole_matrix() {
    for (n, k, size) in [(70, 45, 63.5), (1_030, 64, 20.0), (70, 256, 127.0), (70, 300, 90.0)] {
        let lists = super::packed_tests::some_lists(n as u32);
        let lists = lists.each_ref().map(Vec::as_slice);
        let mut layer = Layer::random(n, k, size, 8);
        let x: Vec<f32> = random(lists.len() * k, 11).iter().map(|x| 4.0 * x).collect();
        for input in [Some(40.0), Some(10.0), None] {
            layer.input = input;
            let all = layer.twin(&x);
            for isa in Isa::available() {
                let Layer { values, multipliers, input, bias, .. } = &layer;
                let scales = MarianScales { multipliers, input: *input, bias: bias.as_deref() };
                let table = PackedB::int8_table(isa, Int8Values::Owned(values.clone()), scales, k);
                for packed in [layer.pack(isa), table] {
                    let chosen = super::packed_tests::multiply_chosen(&packed, &x, &lists, None);
                    for ((y, list), chosen) in all.chunks(n).zip(lists).zip(chosen) {
                        let want: Vec<f32> = list.iter().map(|&row| y[row as usize]).collect();
                        assert_same(&chosen, &want, &format!("{isa} {n}×{k} {input:?}"));
                    }
                    assert!(packed.has_own_bias());
                    assert_same(&multiply(&packed, &x, false), &all, &format!("{isa} {n}×{k} {input:?}"));
                    let mut row = vec![0.0; k];
                    packed.read_row(n - 1, &mut row);
                    let inverse = 1.0 / multipliers[n - 1];
                    let want = values[(n - 1) * k..].iter().map(|&w| f32::from(w) * inverse);
                    assert!(row.iter().copied().eq(want));
                }
            }
        }
    }
}

#[test]
fn rows_are_read_back_as_bergamot_reads_embeddings() {
    let (n, k) = (37, 45);
    let layer = Layer::random(n, k, 63.5, 12);
    for isa in Isa::available() {
        let (packed, mut row) = (layer.pack(isa), vec![0.0; k]);
        for i in 0..n {
            packed.read_row(i, &mut row);
            let inverse = 1.0 / layer.multipliers[i];
            let want: Vec<f32> = layer.values[i * k..][..k].iter().map(|&q| f32::from(q) * inverse).collect();
            assert_same(&row, &want, isa.name());
        }
    }
}

#[test]
fn relu_in_the_epilogue_is_relu_afterwards() {
    let (m, n, k) = (5, 21, 40);
    let (w, x) = (random(n * k, 13), random(m * k, 14));
    let (values, scales) = quantize_rows(&w, k);
    for isa in Isa::available() {
        for packed in [
            PackedB::f32(isa, &w, n, k),
            PackedB::int8(isa, &values, &scales, k),
            Layer::random(n, k, 30.0, 15).pack(isa),
        ] {
            let want: Vec<f32> = multiply(&packed, &x, false).iter().map(|y| y.max(0.0)).collect();
            assert!(want.contains(&0.0) && want.iter().any(|&y| y > 0.0));
            assert_eq!(multiply(&packed, &x, true), want, "{isa}");
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others_nor_a_column_on_who_computes_it() {
    let (m, n, k) = (11, 100, 70);
    let mut layer = Layer::random(n, k, 63.5, 16);
    let x: Vec<f32> = random(m * k, 17).iter().enumerate().map(|(i, x)| x * (i / k + 1) as f32).collect();
    for isa in Isa::available() {
        for input in [Some(20.0), None] {
            layer.input = input;
            let packed = layer.pack(isa);
            let whole = multiply(&packed, &x, false);
            for r in 0..m {
                assert_same(&multiply(&packed, &x[r * k..][..k], false), &whole[r * n..][..n], isa.name());
            }
            for size in [1, 2, 3] {
                let (mut y, mut scratch) = (vec![0.0; m * n], RowScratch::default());
                let rows = packed.rows(Mat::new(&x, m, k), &mut scratch);
                packed.matmul_with(&mut Team::new(size), rows, None, MatMut::new(&mut y, m, n));
                assert_same(&y, &whole, &format!("{isa}, a team of {size}"));
            }
        }
    }
}

#[test]
fn nan_and_infinity_stay_in_their_row() {
    for isa in Isa::available() {
        for k in [1, 7, 33] {
            for input in [Some(10.0), None] {
                let layer = Layer { input, ..Layer::random(3, k, 63.5, 18) };
                for non_finite in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut x = random(2 * k, 19);
                    x[k - 1] = non_finite;
                    let y = multiply(&layer.pack(isa), &x, false);
                    assert!(y[..3].iter().all(|y| y.is_nan()), "{isa} {k} {non_finite}: {y:?}");
                    assert_same(&y[3..], &layer.twin(&x[k..]), isa.name());
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "rows were made for another matrix")]
fn rows_of_another_multiplier_are_refused() {
    let (mut layer, isa, mut scratch) = (Layer::random(2, 8, 20.0, 20), Isa::best(), RowScratch::default());
    let first = layer.pack(isa);
    layer.input = Some(3.0);
    let (x, mut y) = (random(8, 21), [0.0; 2]);
    let rows = first.rows(Mat::new(&x, 1, 8), &mut scratch);
    layer.pack(isa).matmul(rows, 0..2, None, MatMut::new(&mut y, 1, 2));
}
