//! One tensor in a weights file of any format.

use crate::DType;
use half::f16;
use regard_kernels::bf16;

/// The maximum number of dimensions of a tensor, in a file of any format.
pub(super) const MAX_DIMENSIONS: usize = 8;

/// A tensor: its number format, its shape, and its bytes from the first element to the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'a> {
    pub(super) dtype: DType,
    pub(crate) shape: &'a [usize],
    /// The stride of each dimension in elements; `None` if contiguous.
    pub(super) strides: Option<&'a [usize]>,
    pub(super) bytes: &'a [u8],
}

impl Tensor<'_> {
    /// Writes the values to `to`, which has the tensor's size; an error says what is wrong with
    /// them.
    pub(crate) fn read(&self, to: &mut [f32]) -> Result<(), String> {
        match self.dtype {
            DType::F32 => self.convert(to, f32::from_le_bytes),
            DType::F16 => self.convert(to, |b| f16::from_le_bytes(b).to_f32()),
            DType::Bf16 => self.convert(to, |b| bf16::to_f32(u16::from_le_bytes(b))),
            DType::Int8 => self.convert(to, |b: [u8; 1]| f32::from(i8::from_le_bytes(b))),
            other => {
                return Err(format!("is of type {}; F32, F16, BF16 and I8 can be read", other.code()));
            }
        }
        match to.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(format!("holds {} at {at}: these weights are damaged", to[at])),
            None => Ok(()),
        }
    }

    fn convert<const N: usize>(&self, to: &mut [f32], f: impl Fn([u8; N]) -> f32) {
        let (numbers, _) = self.bytes.as_chunks::<N>();
        let Some(strides) = self.strides else {
            for (to, number) in to.iter_mut().zip(numbers) {
                *to = f(*number);
            }
            return;
        };
        let mut place = Place { shape: self.shape, strides, index: [0; MAX_DIMENSIONS], at: 0 };
        for to in to {
            // Opening the file has checked that every offset lies inside it.
            *to = numbers.get(place.at).map_or(f32::NAN, |number| f(*number));
            place.advance();
        }
    }
}

/// The offset of the next element of a strided tensor, with the last dimension varying fastest.
struct Place<'a> {
    shape: &'a [usize],
    strides: &'a [usize],
    index: [usize; MAX_DIMENSIONS],
    at: usize,
}

impl Place<'_> {
    fn advance(&mut self) {
        for ((index, n), stride) in self.index.iter_mut().zip(self.shape).zip(self.strides).rev() {
            *index += 1;
            if *index < *n {
                self.at += stride;
                return;
            }
            self.at -= (*index - 1) * stride;
            *index = 0;
        }
    }
}

/// Whether elements with these strides are contiguous. A dimension of size 1 may have any stride.
pub(super) fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(&n, &stride)| {
        let fits = n == 1 || stride == expected;
        expected = expected.saturating_mul(n);
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shape: &[usize], strides: &[usize], numbers: usize) -> Vec<f32> {
        let bytes: Vec<u8> = (0..numbers).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let mut to = vec![-1.0; shape.iter().product()];
        Tensor { dtype: DType::F32, shape, strides: Some(strides), bytes: &bytes }.read(&mut to).unwrap();
        to
    }

    #[test]
    fn strides_say_where_the_numbers_are() {
        assert_eq!(read(&[2, 3], &[3, 1], 6), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(read(&[3, 2], &[1, 3], 6), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(read(&[2, 2, 2], &[1, 4, 2], 8), [0.0, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0]);
        assert_eq!(read(&[3], &[4], 9), [0.0, 4.0, 8.0]);
        assert_eq!(read(&[], &[], 1), [0.0]);
        assert!(read(&[0, 3], &[3, 1], 0).is_empty());
    }

    #[test]
    fn rows_end_to_end_are_known() {
        assert!(is_contiguous(&[2, 3], &[3, 1]));
        assert!(is_contiguous(&[1, 3], &[77, 1]));
        assert!(is_contiguous(&[], &[]));
        assert!(!is_contiguous(&[3, 2], &[1, 3]));
        assert!(!is_contiguous(&[3], &[2]));
        assert!(!is_contiguous(&[2], &[0]));
    }
}
