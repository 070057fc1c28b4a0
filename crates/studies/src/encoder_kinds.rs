//! The encoder kinds that the studies compare, as model settings.

use regard_core::model::{Direction, EncoderKind};

/// The kernel width k of a convolution, in tokens.
pub(crate) const WIDTH: usize = 3;

/// Every token attends to every token.
pub(crate) const ATTENTION: EncoderKind = EncoderKind::Attention { window: None };
/// A recurrent unit that reads from left to right.
pub(crate) const RECURRENT: EncoderKind = EncoderKind::Recurrent { direction: Direction::Forward };
/// A convolution over adjacent tokens.
pub(crate) const CONVOLUTION: EncoderKind =
    EncoderKind::Convolutional { kernel_width: WIDTH, dilated: false };
/// A convolution with a dilation that grows from layer to layer.
pub(crate) const DILATED: EncoderKind = EncoderKind::Convolutional { kernel_width: WIDTH, dilated: true };

/// The name in tables, which distinguishes more kinds than the settings do.
pub(crate) fn kind_name(kind: EncoderKind) -> &'static str {
    match kind {
        EncoderKind::Attention { window: None } => "attention",
        EncoderKind::Attention { window: Some(_) } | EncoderKind::Window { .. } => "attention in a window",
        EncoderKind::Recurrent { direction: Direction::Forward } => "recurrent",
        EncoderKind::Recurrent { direction: Direction::Both } => "recurrent, both directions",
        EncoderKind::Convolutional { dilated: false, .. } => "convolution",
        EncoderKind::Convolutional { dilated: true, .. } => "dilated convolution",
    }
}

/// The Chinese name, for answers.
pub(crate) fn kind_name_zh(kind: EncoderKind) -> &'static str {
    match kind {
        EncoderKind::Attention { window: None } => "注意力",
        EncoderKind::Attention { window: Some(_) } | EncoderKind::Window { .. } => "窗口内的注意力",
        EncoderKind::Recurrent { direction: Direction::Forward } => "循环单元",
        EncoderKind::Recurrent { direction: Direction::Both } => "双向循环单元",
        EncoderKind::Convolutional { dilated: false, .. } => "卷积",
        EncoderKind::Convolutional { dilated: true, .. } => "空洞卷积",
    }
}
