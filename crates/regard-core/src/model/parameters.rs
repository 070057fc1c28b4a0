//! The parameters of a model by name: where each lies in the flat vector of weights, and how it is
//! initialised.

use super::layers::Side;
use regard_kernels::Key;
use std::ops::Range;

/// Where a parameter lies in the flat vector of all weights, and so in that of all gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The first number.
    pub offset: usize,
    /// How many numbers.
    pub len: usize,
}

impl Param {
    /// Its place.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len
    }
}

/// How a parameter is filled before training, as in the paper's reference implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// Biases and β.
    Zero,
    /// γ.
    One,
    /// Uniform within ±√(6 / (fan_in + fan_out)), after Glorot. Queries, keys and values begin as
    /// one matrix, which makes them smaller than three would be: a post-norm model then finds its
    /// attention at high learning rates.
    Glorot {
        /// Rows of the matrix that it is a part of.
        fan_out: usize,
    },
    /// Normal with this standard deviation; the last row (padding) is zero if `pad`.
    Normal {
        /// The standard deviation.
        deviation: f32,
        /// Whether the last row is zero.
        pad: bool,
    },
}

/// What a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The matrix of a linear layer.
    Matrix,
    /// A bias, or γ or β of a norm.
    Vector,
    /// Vectors of words: embeddings, the output layer.
    Vocabulary,
    /// Vectors of positions, or of distances between them.
    Positions,
}

/// Where in the model a parameter is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Encoder (source) or decoder (target); none if both use it.
    pub stack: Option<Side>,
    /// The layer of the stack, from 0; none outside the layers.
    pub layer: Option<usize>,
}

/// One named parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// For example `encoder.layers.0.self_attn.out.weight`.
    pub name: String,
    /// Rows and columns; a vector has one row.
    pub shape: [usize; 2],
    /// Its place.
    pub param: Param,
    /// How it begins.
    pub initial: Initial,
    /// What it is for.
    pub role: Role,
    /// Where it is.
    pub location: Location,
    /// Of a linear layer's matrix, the vector that is added to its outputs.
    pub bias: Option<Param>,
}

impl Parameter {
    /// Numbers to begin with; all random ones follow from `key`.
    pub fn initialise(&self, key: Key) -> Vec<f32> {
        let mut to = vec![0.0; self.param.len];
        self.fill(key, &mut to);
        to
    }

    fn fill(&self, key: Key, to: &mut [f32]) {
        let [rows, cols] = self.shape;
        match self.initial {
            Initial::Zero => {}
            Initial::One => to.fill(1.0),
            Initial::Glorot { fan_out } => {
                let bound = (6.0 / (fan_out + cols) as f32).sqrt();
                for (i, x) in to.iter_mut().enumerate() {
                    *x = bound * (2.0 * key.uniform(i as u32) - 1.0);
                }
            }
            Initial::Normal { deviation, pad } => {
                let filled = if pad { (rows - 1) * cols } else { rows * cols };
                for (i, x) in to[..filled].iter_mut().enumerate() {
                    *x = deviation * key.normal(i as u32);
                }
            }
        }
    }

    /// Whether tokens are multiplied by it or looked up in it: what is packed for decoding, and
    /// kept in 8 bits if that is wanted. Vectors and tables of positions are not.
    pub fn is_matrix(&self) -> bool {
        matches!(self.role, Role::Matrix | Role::Vocabulary)
    }
}

/// Numbers of parameters by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Parts {
    /// All of them.
    pub total: usize,
    /// The vocabulary matrices.
    pub embeddings: usize,
    /// The encoder's layers.
    pub encoder: usize,
    /// The decoder's layers.
    pub decoder: usize,
}

/// All parameters of a model in the order of their places, which leave no gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    list: Vec<Parameter>,
    len: usize,
}

impl Parameters {
    /// Adds one at the end; where it lies.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        shape: [usize; 2],
        initial: Initial,
        role: Role,
        location: Location,
    ) -> Param {
        let param = Param { offset: self.len, len: shape[0] * shape[1] };
        self.list.push(Parameter { name: name.into(), shape, param, initial, role, location, bias: None });
        self.len += param.len;
        param
    }

    /// Says which vector is added to the outputs of a matrix.
    pub(super) fn set_bias(&mut self, matrix: Param, bias: Param) {
        if let Some(parameter) = self.list.iter_mut().rfind(|p| p.param == matrix) {
            parameter.bias = Some(bias);
        }
    }

    /// How many numbers there are in all.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter> {
        self.list.iter()
    }

    /// How many belong to which part.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        for parameter in self {
            let part = match (parameter.role, parameter.location.stack) {
                (Role::Vocabulary, _) | (_, None) => &mut parts.embeddings,
                (_, Some(Side::Source)) => &mut parts.encoder,
                (_, Some(Side::Target)) => &mut parts.decoder,
            };
            *part += parameter.param.len;
            parts.total += parameter.param.len;
        }
        parts
    }

    /// The one of that name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.list.iter().find(|p| p.name == name)
    }

    /// Weights to begin with: the same for the same seed, on every machine.
    pub fn initialise(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.len];
        for (n, parameter) in self.list.iter().enumerate() {
            parameter.fill(Key::new(seed).child(n as u64), &mut weights[parameter.param.range()]);
        }
        weights
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = &'a Parameter;
    type IntoIter = std::slice::Iter<'a, Parameter>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
