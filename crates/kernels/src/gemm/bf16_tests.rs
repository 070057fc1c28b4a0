use super::bf16_kernel::{self, Instructions, KC, LAYOUT, NC, pack_b_by};
use super::nest::CTile;
use super::packed_b::Panels;
use super::*;
use crate::aligned::Aligned;
use crate::naive;
use crate::testing::{SIZES, assert_close, random, transposed, widen};

/// `vdpbf16ps` in plain Rust: what Intel's documentation specifies for one lane.
fn model(sum: f32, x: u32, y: u32) -> f32 {
    let flush = |x: f32| if x.is_subnormal() { 0.0 * x } else { x };
    let halves = |x: u32| [x & 0xffff_0000, x << 16].map(|half| flush(f32::from_bits(half)));
    let add = |sum: f32, (x, y): (f32, f32)| flush(x.mul_add(y, flush(sum)));
    halves(x).into_iter().zip(halves(y)).fold(sum, add)
}

/// A kernel built on that model: it runs everywhere, with the same packing and the same blocks.
#[derive(Clone, Copy)]
struct Model;

impl Instructions for Model {
    fn pack<const W: usize>(self, x: Mat<'_>, to: &mut [u32]) {
        rounding::pack::<W>(rounding::Plain, x, to);
    }

    fn pack_rows(self, x: Mat<'_>, to: &mut [u32], stride: usize) {
        rounding::pack_rows(rounding::Plain, x, to, stride);
    }

    unsafe fn tile<const R: usize, const BY_ROWS: bool>(
        self,
        pairs: usize,
        (left, stride): (*const u32, usize),
        panel: *const u32,
        c: CTile,
        add: bool,
    ) {
        for i in 0..R {
            for j in 0..c.columns {
                let sum = (0..pairs).fold(0.0, |sum, p| {
                    // SAFETY: the caller vouches for `R` and thirty-two words of each pair.
                    let (x, y) = unsafe {
                        (
                            *left.add(if BY_ROWS { i * stride + p } else { p * stride + i }),
                            *panel.add(p * 32 + j),
                        )
                    };
                    model(sum, x, y)
                });
                // SAFETY: the caller vouches for the tile.
                unsafe {
                    let to = c.to.add(i * c.stride + j);
                    *to = if add { *to } else { 0.0 } + sum;
                }
            }
        }
    }
}

/// Multiplies with [`Model`].
fn product(c: MatMut<'_>, a: Mat<'_>, b: Operand<'_>, into: Accumulate, threads: usize) {
    bf16_kernel::matmul_rows_by(Model, c, a, b, into, threads);
}

/// Packs B with [`Model`].
fn pack_right(b: Mat<'_>, to: &mut Aligned<u32>) {
    to.resize(LAYOUT.words(b.rows, b.cols));
    pack_b_by(Model, b, to.as_mut_slice());
}

type Product = fn(MatMut<'_>, Mat<'_>, Mat<'_>, Accumulate, usize);

/// Every kernel that sums in the order of the instruction: the model, and the instruction itself
/// where the CPU has it.
fn kernels() -> Vec<(&'static str, Product)> {
    let mut all: Vec<(&'static str, Product)> =
        vec![("model", |c, a, b, into, threads| product(c, a, Operand::Matrix(b), into, threads))];
    if Isa::best().has_bf16() {
        all.push(("instruction", |c, a, b, into, threads| {
            bf16_kernel::matmul_rows(Isa::best(), c, a, Operand::Matrix(b), into, threads)
        }));
    }
    all
}

/// The same, plus bf16 emulated in f32.
fn every_way() -> Vec<(&'static str, Product)> {
    let software: Product = |c, a, b, into, threads| {
        Gemm::bf16_in_software(Isa::best()).matmul(c, a, b, into, threads);
    };
    kernels().into_iter().chain([("software", software)]).collect()
}

fn rounded(x: &[f32]) -> Vec<f32> {
    x.iter().map(|&x| crate::bf16::round(x)).collect()
}

/// The four combinations of operand layouts, for operands that are given row by row.
fn in_every_form(
    (m, n, k): (usize, usize, usize),
    a: &[f32],
    b: &[f32],
    mut check: impl FnMut(&str, Mat<'_>, Mat<'_>),
) {
    let (at, bt) = (transposed(a, m, k), transposed(b, k, n));
    let (a, at) = (Mat::new(a, m, k), Mat::new(&at, k, m).t());
    let (b, bt) = (Mat::new(b, k, n), Mat::new(&bt, n, k).t());
    for (a, b, form) in [(a, b, "nn"), (a, bt, "nt"), (at, b, "tn"), (at, bt, "tt")] {
        check(form, a, b);
    }
}

#[test]
fn rounding_is_to_the_nearest_and_ties_go_to_even() {
    let round = |bits: u32| crate::bf16::round(f32::from_bits(bits)).to_bits();
    assert_eq!(round(0x3f80_0000), 0x3f80_0000, "1 stays");
    assert_eq!(round(0x3f80_7fff), 0x3f80_0000, "below the middle");
    assert_eq!(round(0x3f80_8000), 0x3f80_0000, "the middle above an even one");
    assert_eq!(round(0x3f81_8000), 0x3f82_0000, "the middle above an odd one");
    assert_eq!(round(0xbf80_8001), 0xbf81_0000, "above the middle, negative");
    assert_eq!(round(0x7f7f_7fff), 0x7f7f_0000, "the largest that stays finite");
    assert_eq!(round(0x7f7f_8000), 0x7f80_0000, "and the first that does not");
    assert_eq!(round(0xff80_0000), 0xff80_0000, "an infinity");
    assert_eq!(round(0x8000_0000), 0x8000_0000, "a negative zero");
    assert_eq!(round(0x0000_8001), 0x0001_0000, "a denormal");
    for nan in [0x7f80_0001, 0x7fff_ffff, 0xffc0_0000, 0xff80_8000] {
        assert!(f32::from_bits(round(nan)).is_nan(), "{nan:x}");
    }
    for x in random(2000, 7) {
        let step = f64::from(x).abs().log2().floor().exp2() / 128.0;
        assert!((f64::from(crate::bf16::round(x)) - f64::from(x)).abs() <= step / 2.0, "{x}");
    }
}

#[test]
fn every_transposition_agrees_with_the_naive_twin() {
    for (name, product) in every_way() {
        for &m in &[0, 1, 11, 13, 25] {
            for &n in SIZES {
                for &k in &[0, 1, 2, 33] {
                    let (a, b, old) = (random(m * k, 1), random(k * n, 2), random(m * n, 3));
                    let want = naive::matmul(&widen(&rounded(&a)), &widen(&rounded(&b)), m, n, k);
                    let plus: Vec<f64> = want.iter().zip(&old).map(|(w, o)| w + f64::from(*o)).collect();
                    in_every_form((m, n, k), &a, &b, |form, a, b| {
                        for (into, want) in [(Accumulate::Overwrite, &want), (Accumulate::Add, &plus)] {
                            let mut c = old.clone();
                            product(MatMut::new(&mut c, m, n), a, b, into, 1);
                            // At most 33 products of at most 4 each; every addition rounds to 24
                            // bits.
                            assert_close(&c, want, 2e-5, &format!("{name} {form} {m}×{n}×{k} {into:?}"));
                        }
                    });
                }
            }
        }
    }
}

/// Integers whose sums f32 holds exactly need no rounding: every order of summation gives the same
/// bits.
#[test]
fn sums_beyond_a_block_are_exact_where_they_can_be() {
    let whole = |count: usize, seed: u64| -> Vec<f32> {
        random(count, seed).iter().map(|x| (x * 8.0).round()).collect()
    };
    for (m, n, k) in [(13, 40, KC + 1), (7, 530, 9), (3, 17, 2 * KC - 1), (12, 32, KC)] {
        let (a, b) = (whole(m * k, 4), whole(k * n, 5));
        let want: Vec<f32> =
            naive::matmul(&widen(&a), &widen(&b), m, n, k).iter().map(|&x| x as f32).collect();
        for (name, product) in every_way() {
            in_every_form((m, n, k), &a, &b, |form, a, b| {
                let mut c = vec![f32::NAN; m * n];
                product(MatMut::new(&mut c, m, n), a, b, Accumulate::Overwrite, 1);
                assert_eq!(c, want, "{name} {form} {m}×{n}×{k}");
                product(MatMut::new(&mut c, m, n), a, b, Accumulate::Add, 1);
                assert!(c.iter().zip(&want).all(|(c, w)| *c == 2.0 * w), "{name} {form} {m}×{n}×{k} added");
            });
        }
    }
}

#[test]
fn parts_of_matrices_are_multiplied_and_written_in_place() {
    let (whole, right) = (random(6 * 50, 1), random(20 * 7, 2));
    let (x, w) = (Mat::new(&whole, 6, 50).columns(13, 20).rows_from(1, 4), Mat::new(&right, 20, 7));
    let packed: Vec<f32> = (0..4).flat_map(|r| x.row(r).to_vec()).collect();
    for (name, product) in every_way() {
        let mut want = vec![0.0; 4 * 7];
        product(MatMut::new(&mut want, 4, 7), Mat::new(&packed, 4, 20), w, Accumulate::Overwrite, 1);
        let mut got = vec![9.0; 4 * 10];
        let (_, to) = MatMut::new(&mut got, 4, 10).split_columns(2);
        let (to, _) = to.split_columns(7);
        product(to, x, w, Accumulate::Overwrite, 1);
        for (r, row) in got.chunks(10).enumerate() {
            assert_eq!(row[2..9], want[r * 7..][..7], "{name}");
            assert_eq!((row[0], row[1], row[9]), (9.0, 9.0, 9.0), "{name}: beside the part");
        }
    }
}

#[test]
fn a_row_does_not_depend_on_the_others_nor_on_the_threads() {
    let (m, n, k) = (200, 33, KC + 20);
    let (a, b) = (random(m * k, 1), random(k * n, 2));
    for (name, product) in kernels() {
        let run = |rows: std::ops::Range<usize>, threads| {
            let mut c = vec![0.0; rows.len() * n];
            let a = Mat::new(&a, m, k).rows_from(rows.start, rows.len());
            product(
                MatMut::new(&mut c, rows.len(), n),
                a,
                Mat::new(&b, k, n),
                Accumulate::Overwrite,
                threads,
            );
            c
        };
        let all = run(0..m, 1);
        assert_eq!(run(0..m, 2), all, "{name}: two threads");
        assert_eq!(run(0..m, 3), all, "{name}: three threads");
        assert_eq!(run(37..38, 1), all[37 * n..38 * n], "{name}: one row");
    }
}

#[test]
fn what_is_not_finite_stays_in_its_row_and_column_and_denormals_are_zero() {
    let (m, n, k) = (14, 35, 40);
    for (name, product) in every_way() {
        for bad in [f32::NAN, f32::INFINITY, f32::MAX] {
            let (mut a, mut b) = (vec![1.0; m * k], vec![1.0; k * n]);
            a[12 * k + 39] = bad;
            b[3 * n + 33] = bad;
            let mut c = vec![0.0; m * n];
            product(
                MatMut::new(&mut c, m, n),
                Mat::new(&a, m, k),
                Mat::new(&b, k, n),
                Accumulate::Overwrite,
                1,
            );
            for (i, x) in c.iter().enumerate() {
                let touched = i / n == 12 || i % n == 33;
                assert!(
                    if touched { x.is_nan() || *x == f32::INFINITY } else { *x == 40.0 },
                    "{name} {bad} {i}: {x}"
                );
                assert!(!touched || x.is_nan() == bad.is_nan(), "{name} {bad} {i}: {x}");
            }
        }
    }
    // 2⁻¹³⁰ is a denormal, and so is 2⁻⁷⁰ · 2⁻⁷⁰.
    let tiny = [2f32.powi(-130), 1.0, 2f32.powi(-70), 2f32.powi(-70)];
    for (name, product) in kernels() {
        for (x, y) in [(tiny[0], 2f32.powi(100)), (tiny[0], 1.0), (tiny[2], tiny[3])] {
            let mut c = [7.0];
            product(
                MatMut::new(&mut c, 1, 1),
                Mat::new(&[x], 1, 1),
                Mat::new(&[y], 1, 1),
                Accumulate::Overwrite,
                1,
            );
            assert_eq!(c, [0.0], "{name} {x:e} {y:e}");
        }
    }
}

/// Parts of a right operand that begin and end at block boundaries: rows and columns.
fn parts(k: usize, n: usize) -> Vec<(usize, usize, usize, usize)> {
    let mut parts = vec![(0, k, 0, n)];
    parts.extend((n > NC).then(|| (0, k, NC, n - NC)));
    parts.extend((n > 2 * NC).then_some((0, k, NC, NC)));
    parts.extend((k > KC).then(|| (KC, k - KC, 0, n)));
    parts.extend((k > KC && n > NC).then(|| (0, KC, NC, n - NC)));
    parts
}

#[test]
fn a_packed_operand_gives_the_bits_of_the_matrix() {
    for (m, n, k) in
        [(1, 1, 1), (13, 40, KC + 1), (5, 2 * NC + 33, 9), (14, NC + 5, 2 * KC - 1), (110, 40, 9), (0, 3, 4)]
    {
        let (a, b, old) = (random(m * k, 1), random(k * n, 2), random(m * n, 3));
        in_every_form((m, n, k), &a, &b, |form, a, b| {
            let mut words = Aligned::default();
            // Nothing remains of what was packed before.
            pack_right(b.t(), &mut words);
            pack_right(b, &mut words);
            let packed = Panels::new(words.as_slice(), LAYOUT, k, n);
            for (first, rows, start, cols) in parts(k, n) {
                let (a, b) = (a.columns(first, rows), b.rows_from(first, rows).columns(start, cols));
                let packed = packed.columns(start, cols).rows_from(first, rows);
                for into in [Accumulate::Overwrite, Accumulate::Add] {
                    let [want, got] = [Operand::Matrix(b), Operand::Packed(packed)].map(|b| {
                        let mut c = old[..m * cols].to_vec();
                        product(MatMut::new(&mut c, m, cols), a, b, into, 1);
                        c
                    });
                    assert_eq!(got, want, "{form} {m}×{n}×{k} {into:?} {first} {rows} {start} {cols}");
                }
            }
            for gemm in every_gemm() {
                let mut packed = PackedB::default();
                gemm.pack_b(b.t(), &mut packed);
                gemm.pack_b(b, &mut packed);
                for (first, rows, start, cols) in parts(k, n) {
                    let (a, b) = (a.columns(first, rows), b.rows_from(first, rows).columns(start, cols));
                    let part = packed.whole().rows_from(first, rows).columns(start, cols);
                    let [mut want, mut got] = [(); 2].map(|()| old[..m * cols].to_vec());
                    gemm.matmul(MatMut::new(&mut want, m, cols), a, b, Accumulate::Add, 1);
                    gemm.matmul(MatMut::new(&mut got, m, cols), a, part, Accumulate::Add, 2);
                    assert_eq!(got, want, "{} {form} {m}×{n}×{k}", gemm.name());
                }
            }
        });
    }
}

fn every_gemm() -> Vec<Gemm> {
    let isa = Isa::best();
    [Gemm::f32(isa), Gemm::bf16_in_software(isa)].into_iter().chain(Gemm::bf16(isa)).collect()
}

#[test]
#[should_panic(expected = "packed for Some(F32) in bf16")]
fn an_operand_packed_for_other_products_is_refused() {
    let x = Mat::new(&[1.0], 1, 1);
    let mut packed = PackedB::default();
    Gemm::f32(Isa::best()).pack_b(x, &mut packed);
    let gemm = Gemm::bf16_in_software(Isa::best());
    gemm.matmul(MatMut::new(&mut [0.0], 1, 1), x, packed.whole(), Accumulate::Add, 1);
}

#[test]
#[should_panic(expected = "borders")]
fn parts_of_packed_operands_begin_with_a_block() {
    let mut words = Aligned::default();
    let x = vec![0.0; 2 * KC];
    pack_right(Mat::new(&x, 2 * KC, 1), &mut words);
    Panels::new(words.as_slice(), LAYOUT, 2 * KC, 1).rows_from(1, KC);
}

#[test]
#[should_panic(expected = "is_multiple_of")]
fn and_with_a_panel() {
    let mut words = Aligned::default();
    let x = vec![0.0; 2 * NC];
    pack_right(Mat::new(&x, 1, 2 * NC), &mut words);
    Panels::new(words.as_slice(), LAYOUT, 1, 2 * NC).columns(1, NC);
}

/// Holds where the instruction behaves as Intel documents it. A CPU that sums a pair in another
/// order would fail only here, so this test runs only on request.
#[test]
#[ignore = "for emulators: another maker's instruction may round differently"]
fn the_instruction_and_its_model_give_the_same_bits() {
    assert!(Isa::best().has_bf16(), "this CPU has no vdpbf16ps");
    for (m, n, k) in [(1, 1, 2), (13, 33, 75), (24, 64, KC + 3)] {
        let (a, b) = (random(m * k, 8), random(k * n, 9));
        let [want, got] = [0, 1].map(|which| {
            let mut c = vec![0.0; m * n];
            kernels()[which].1(
                MatMut::new(&mut c, m, n),
                Mat::new(&a, m, k),
                Mat::new(&b, k, n),
                Accumulate::Overwrite,
                1,
            );
            c
        });
        assert_eq!(got, want, "{m}×{n}×{k}");
    }
}

#[test]
fn bf16_exists_only_where_the_cpu_has_it() {
    for isa in Isa::available() {
        assert_eq!(Gemm::bf16(isa).is_some(), isa.has_bf16());
        assert_eq!(Gemm::bf16_in_software(isa).isa(), isa);
    }
    assert_eq!(Gemm::bf16(Isa::PORTABLE), None);
    assert_eq!(Gemm::f32(Isa::best()).name(), "f32");
}

#[test]
#[should_panic(expected = "product of 2×3 and 2×3 into 2×3")]
fn shapes_that_do_not_fit_are_named() {
    let x = [0.0; 6];
    let mut c = [0.0; 6];
    let x = Mat::new(&x, 2, 3);
    product(MatMut::new(&mut c, 2, 3), x, Operand::Matrix(x), Accumulate::Add, 1);
}
