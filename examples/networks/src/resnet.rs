//! ResNet-50 as a program, with seeded weights in a file of tensors.
//!
//! The network is that of He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition" (2015), in the
//! form where the stride of a stage sits on its 3x3 convolution: images padded by 3, a convolution of 7x7, a
//! maximum over 3x3, four stages of 3, 4, 6 and 3 blocks, a mean over the image, a product.
//!
//! A block is three convolutions, each with batch norm, beside a shortcut that the first block of a stage
//! convolves, too:
//!
//! ```text
//!  x ──┬─ 1x1 ─ relu ─ 3x3 / stride ─ relu ─ 1x1 ─ + ─ relu ─
//!      └─ (1x1 / stride) ──────────────────────────┘
//! ```
//!
//! # The program
//!
//! | Function | Takes | Gives |
//! | --- | --- | --- |
//! | `weights` | the file's path | all tensors but the first |
//! | `infer` | images `[batch, image, image, 3]`, the weights | logits `[batch, classes]`, and when they are there |
//! | `main` | | prints the logits of the file's images |
//!
//! In the packed form, `pack` takes the weights and gives what `infer` takes in their place.
//!
//! `infer` makes the tensors between its layers anew, so that calls may run side by side.

use std::fmt::Write;
use std::sync::Arc;

use tfrt::{Error, HostAllocator};
use tfrt_tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};

use crate::random::Random;

mod eager;
mod layers;
mod packed;
mod text;

pub use eager::EagerResNet;
pub use layers::{Convolution, Stage};

/// The form of the layers in the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A kernel for each convolution, each batch norm, each relu, as in the original's program.
    #[default]
    Plain,
    /// Batch norm, and relu where it follows, in the convolution's kernel.
    Fused,
    /// Packed filters: [`Fused`](Self::Fused) with filters that a function of their own packs ahead, sums with
    /// shortcuts included; the images of a stage share their memory.
    Packed,
}

/// A residual network of bottlenecks.
///
/// # Examples
///
/// ```
/// use tfrt_networks::resnet::ResNet;
///
/// let network = ResNet { batch: 8, ..ResNet::FIFTY };
/// assert_eq!(network.convolutions().len(), 53);
/// assert!(network.program("weights.btf").contains("shape = [8 : i64, 7 : i64, 7 : i64, 2048 : i64]"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResNet {
    /// The number of images.
    pub batch: usize,
    /// Their height and width. Of nothing there is no convolution: a program for images of 0 fails.
    pub image: usize,
    /// The channels of the first convolution. Stages have 4, 8, 16 and 32 times as many.
    pub width: usize,
    /// The blocks of the stages.
    pub blocks: [usize; 4],
    /// The number of logits.
    pub classes: usize,
    /// Form of the program.
    pub form: Form,
}

impl ResNet {
    /// ResNet-50, for one image.
    pub const FIFTY: ResNet = ResNet {
        batch: 1,
        image: 224,
        width: 64,
        blocks: [3, 4, 6, 3],
        classes: 1001,
        form: Form::Plain,
    };

    /// Returns the names of the weights in the order of the file, where an image stands before them.
    pub fn names(&self) -> Vec<String> {
        let convolutions = self.convolutions();
        let of = |convolution: &Convolution| {
            let name = convolution.name.clone();
            ["filter", "scale", "shift", "mean", "variance"].map(|part| format!("{name}_{part}"))
        };
        let mut names: Vec<String> = convolutions.iter().flat_map(of).collect();
        names.extend(["fc_weight", "fc_bias"].map(str::to_owned));
        names
    }

    /// Makes the tensors of the file: images, then the weights. Filters are drawn so that what goes through
    /// them keeps its size (He and others, "Delving Deep into Rectifiers", 2015); the last batch norm of a
    /// block halves it, so that sums over many blocks stay small.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if the allocator has no room, `InvalidArgument` if the network is too large for
    /// any memory.
    pub fn tensors(
        &self,
        seed: u64,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Vec<Tensor>, Error> {
        let mut random = Random::new(seed);
        let mut tensors = Vec::new();
        let mut make = |extents: &[usize], center: f32, bound: f32| {
            let metadata = TensorMetadata::new(DType::F32, TensorShape::new(extents)?);
            let mut tensor = DenseHostTensor::zeroed(allocator, metadata)?;
            for element in tensor.elements_mut::<f32>()?.into_iter().flatten() {
                *element = center + random.within(bound);
            }
            tensors.push(tensor.into());
            Ok::<(), Error>(())
        };
        make(&[self.batch, self.image, self.image, 3], 0.0, 1.0)?;
        for convolution in self.convolutions() {
            let Convolution {
                size,
                channels,
                filters,
                ..
            } = convolution;
            let fan_in = size * size * channels;
            make(&[size, size, channels, filters], 0.0, he_bound(fan_in))?;
            let scale = if convolution.is_last { 0.5 } else { 1.0 };
            make(&[filters], scale, 0.2)?;
            make(&[filters], 0.0, 0.1)?;
            make(&[filters], 0.0, 0.1)?;
            make(&[filters], 1.0, 0.2)?;
        }
        let features = self.features();
        make(&[features, self.classes], 0.0, he_bound(features))?;
        make(&[self.classes], 0.0, 0.1)?;
        Ok(tensors)
    }

    /// Returns the program, which reads its weights from the file at `path`.
    pub fn program(&self, path: &str) -> String {
        let mut program = String::new();
        let Self { batch, image, .. } = self;
        writeln!(
            program,
            "// A residual network of {} convolutions for {batch} images of {image}x{image}: see `resnet.rs`.",
            self.convolutions().len()
        )
        .expect("a string takes all");
        text::weights(self, &mut program);
        if self.form == Form::Packed {
            packed::pack(self, &mut program);
            packed::infer(self, &mut program);
        } else {
            text::infer(self, &mut program);
        }
        text::main(self, path, &mut program);
        program
    }
}

/// Returns the bound of evenly drawn weights under which sums of so many products keep their size behind a relu.
fn he_bound(fan_in: usize) -> f32 {
    (6.0 / fan_in.max(1) as f32).sqrt()
}
