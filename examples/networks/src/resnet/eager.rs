//! The network again, one operation at a time.
//!
//! Normalisations are folded into filters, and these are packed, once, when the network is made. What follows a
//! convolution is part of its call; the last of a block is given the shortcut for good, and writes its sums there.

use tfrt::corert::OpAttrs;
use tfrt::eager::{Eager, Handle};
use tfrt::{Error, Runtime};

use super::{Convolution, ResNet};

/// A residual network whose operations are called one at a time.
pub struct EagerResNet {
    eager: Eager,
    first: Layer,
    pool: OpAttrs,
    /// Blocks of all stages, in order.
    blocks: Vec<Block>,
    /// `[features, classes]`
    weight: Handle,
    /// `[classes]`
    bias: Handle,
}

/// Three convolutions beside a shortcut.
struct Block {
    branches: [Layer; 3],
    shortcut: Option<Layer>,
}

/// A convolution with its normalisation, and what follows it.
struct Layer {
    /// Packed.
    filter: Handle,
    /// `[filters]`
    bias: Handle,
    attrs: OpAttrs,
}

impl EagerResNet {
    /// Packs weights, which are in the order of [`ResNet::names`], and waits until that is done.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are other weights than the network has, `ResourceExhausted` if there is no memory.
    pub fn new(
        network: &ResNet,
        weights: &[tfrt_tensor::Tensor],
        runtime: &Runtime,
    ) -> Result<EagerResNet, Error> {
        let (expected, found) = (network.names().len(), weights.len());
        if found != expected {
            return Err(Error::invalid_argument(format!(
                "expected {expected} weights, found {found}"
            )));
        }
        let eager = Eager::new(runtime);
        let mut weights = weights.iter().cloned().map(|weight| eager.of(weight));
        let mut layer = |convolution: &Convolution| Layer::new(convolution, &eager, &mut weights);
        let first = layer(&network.first())?;
        let mut blocks = Vec::new();
        for stage in network.stages() {
            for index in 0..stage.blocks {
                let ([a, b, c], shortcut) = stage.block(index);
                blocks.push(Block {
                    branches: [layer(&a)?, layer(&b)?, layer(&c)?],
                    shortcut: shortcut.as_ref().map(&mut layer).transpose()?,
                });
            }
        }
        let mut pool = OpAttrs::new();
        pool.set("ksize", [3_i64, 3])?
            .set("strides", [2_i64, 2])?
            .set("padding", "SAME")?;
        let [weight, bias] = next(&mut weights)?;
        drop(weights);
        Ok(EagerResNet {
            eager,
            first,
            pool,
            blocks,
            weight,
            bias,
        })
    }

    /// Returns where its operations are called.
    pub fn eager(&self) -> &Eager {
        &self.eager
    }

    /// Returns the logits of images, `[batch, image, image, 3]` to `[batch, classes]`.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the images are of another shape, and if they are not `f32`.
    pub fn logits(&self, images: &Handle) -> Result<Handle, Error> {
        let image = self.convolve(&self.first, images.clone(), None)?;
        let mut image = only(self.eager.op("tf.MaxPool", [image], &self.pool)?)?;
        for Block {
            branches: [a, b, c],
            shortcut,
        } in &self.blocks
        {
            let within = self.convolve(a, image.clone(), None)?;
            let within = self.convolve(b, within, None)?;
            if let Some(shortcut) = shortcut {
                image = self.convolve(shortcut, image, None)?;
            }
            image = self.convolve(c, within, Some(image))?;
        }
        image
            .mean(&[1, 2])?
            .matmul(&self.weight)?
            .bias_add(&self.bias)
    }

    /// Convolves an image, and adds a shortcut, if that belongs to the layer.
    fn convolve(
        &self,
        layer: &Layer,
        image: Handle,
        shortcut: Option<Handle>,
    ) -> Result<Handle, Error> {
        let mut inputs = vec![image, layer.filter.clone(), layer.bias.clone()];
        inputs.extend(shortcut);
        only(self.eager.op("tfrt.conv2d", inputs, &layer.attrs)?)
    }
}

impl Layer {
    fn new(
        convolution: &Convolution,
        eager: &Eager,
        weights: &mut impl Iterator<Item = Handle>,
    ) -> Result<Layer, Error> {
        let Convolution {
            size,
            stride,
            channels,
            filters,
            has_relu,
            is_last,
            ..
        } = *convolution;
        let strides = [stride as i64; 2];
        let mut attrs = OpAttrs::new();
        attrs
            .set("filter", [size, size, channels, filters].map(|n| n as i64))?
            .set("strides", strides)?;
        match (has_relu, is_last) {
            (_, true) => attrs.set("fused_ops", ["BiasAdd", "Add", "Relu"])?,
            (true, _) => attrs.set("fused_ops", ["BiasAdd", "Relu"])?,
            _ => attrs.set("fused_ops", ["BiasAdd"])?,
        };
        match size {
            // The first one's image is padded by as much on all sides.
            7 => attrs
                .set("padding", "EXPLICIT")?
                .set("explicit_paddings", [0_i64, 0, 3, 3, 3, 3, 0, 0])?,
            _ => attrs.set("padding", "SAME")?,
        };
        let mut folding = OpAttrs::new();
        folding.set("epsilon", 1e-5_f32)?;
        let folded = eager.op("tfrt.fold_batch_norm", next::<5>(weights)?, &folding)?;
        let [filter, bias] = folded
            .try_into()
            .map_err(|_| Error::internal("a filter and a bias are expected"))?;
        let mut packing = OpAttrs::new();
        packing.set("strides", strides)?;
        let filter = only(eager.op("tfrt.pack_conv2d", [filter], &packing)?)?;
        filter.wait()?;
        Ok(Layer {
            filter,
            bias,
            attrs,
        })
    }
}

/// Returns the next tensors of a list whose length was looked at.
fn next<const N: usize>(tensors: &mut impl Iterator<Item = Handle>) -> Result<[Handle; N], Error> {
    let next: Vec<Handle> = tensors.take(N).collect();
    next.try_into()
        .map_err(|_| Error::internal("there are fewer weights than names"))
}

/// Returns the result of an operation that has one.
fn only(mut results: Vec<Handle>) -> Result<Handle, Error> {
    results
        .pop()
        .ok_or_else(|| Error::internal("an operation without a result"))
}
