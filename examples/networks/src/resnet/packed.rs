//! The functions of the program whose weights are packed ahead, and whose layers share memory.
//!
//! A stage has three images of its own: what goes through it, and what its blocks have within. The last
//! convolution of a block adds to what goes through. Chains keep an image from being written while somebody
//! still reads it: what reads it comes before what writes it next.

use std::fmt::Write;

use super::{Convolution, ResNet, Stage};

/// Writes a line of a function.
macro_rules! line {
    ($text:expr, $($part:tt)*) => {
        writeln!($text, "  {}", format_args!($($part)*)).expect("a string takes all")
    };
}

/// Returns the types of the packed weights: a filter for each convolution, and the last layer's matrix.
pub(super) fn types(network: &ResNet) -> String {
    let mut types = vec!["!cpu.filter"; network.convolutions().len()];
    types.push("!cpu.matrix");
    types.join(", ")
}

/// Returns the names of the packed weights, in the order of the types.
fn names(network: &ResNet) -> Vec<String> {
    let convolutions = network.convolutions().into_iter();
    let mut names: Vec<String> = convolutions.map(|convolution| convolution.name).collect();
    names.push("fc".to_owned());
    names.iter().map(|name| format!("{name}_packed")).collect()
}

/// Writes the function that packs the weights.
pub(super) fn pack(network: &ResNet, text: &mut String) {
    let parameters: Vec<String> = network
        .names()
        .iter()
        .map(|name| format!("%{name}: !t.tensor"))
        .collect();
    let types = types(network);
    writeln!(
        text,
        "func.func @pack({}) -> ({types}) {{",
        parameters.join(", ")
    )
    .expect("a string takes all");
    line!(text, "%start = tfrt.new.chain");
    for Convolution { name, stride, .. } in network.convolutions() {
        line!(
            text,
            "%{name}_packed = \"cpu.conv2d.pack.batch_norm.f32\"(%{name}_filter, %{name}_scale, %{name}_shift, %{name}_mean, %{name}_variance, %start) {{epsilon = 0.00001 : f32, strides = [{stride} : i64, {stride} : i64]}} : (!t.tensor, !t.tensor, !t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !cpu.filter"
        );
    }
    line!(
        text,
        "%fc_packed = \"cpu.matmul.pack.f32\"(%fc_weight, %fc_bias, %start) : (!t.tensor, !t.tensor, !tfrt.chain) -> !cpu.matrix"
    );
    let values: Vec<String> = names(network)
        .iter()
        .map(|name| format!("%{name}"))
        .collect();
    line!(text, "tfrt.return {} : {types}", values.join(", "));
    text.push_str("}\n\n");
}

/// Writes the function that the network is.
pub(super) fn infer(network: &ResNet, text: &mut String) {
    let types = types(network);
    let parameters: Vec<String> = names(network)
        .iter()
        .zip(types.split(", "))
        .map(|(name, of)| format!("%{name}: {of}"))
        .collect();
    writeln!(
        text,
        "func.func @infer(%images: !t.tensor, {}) -> (!t.tensor, !tfrt.chain) {{",
        parameters.join(", ")
    )
    .expect("a string takes all");
    Body { network, text }.write();
    text.push_str("}\n\n");
}

/// An image, and the chain that says that it is there.
#[derive(Clone)]
struct Image {
    name: String,
    chain: String,
    extent: usize,
}

struct Body<'t> {
    network: &'t ResNet,
    text: &'t mut String,
}

impl Body<'_> {
    fn write(mut self) {
        let ResNet { batch, classes, .. } = *self.network;
        line!(self.text, "%start = tfrt.new.chain");
        let mut image = self.stem();
        for stage in self.network.stages() {
            image = self.stage(&image, &stage);
        }
        let tensor = "\"tfrt_dht.create_uninitialized_tensor.f32.2\"()";
        for (name, columns) in [("features", self.network.features()), ("logits", classes)] {
            line!(
                self.text,
                "%{name} = {tensor} {{shape = [{batch} : i64, {columns} : i64]}} : () -> !t.tensor"
            );
        }
        let Image { name, chain, .. } = image;
        line!(
            self.text,
            "%features_done = \"tfrt_test.global_average_pooling.f32\"(%{name}, %features, %{chain}) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        line!(
            self.text,
            "%done = \"cpu.matmul.f32\"(%features, %fc_packed, %logits, %features_done) {{activation = \"none\"}} : (!t.tensor, !cpu.matrix, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        line!(
            self.text,
            "tfrt.return %logits, %done : !t.tensor, !tfrt.chain"
        );
    }

    /// Writes the layers before the stages.
    fn stem(&mut self) -> Image {
        let (width, image) = (self.network.width, self.network.image);
        let images = Image {
            name: "images".to_owned(),
            chain: "start".to_owned(),
            extent: image,
        };
        let extent = image.saturating_sub(1) / 2 + 1;
        self.tensor("convolved", extent, width);
        let chain = self.convolution(&images, &self.network.first(), 3, "convolved", "");
        let pooled = Image {
            name: "pooled".to_owned(),
            chain: "pooled_done".to_owned(),
            extent: extent.div_ceil(2),
        };
        self.tensor("pooled", pooled.extent, width);
        line!(
            self.text,
            "%pooled_done = \"eigen.max_pooling_2d.f32\"(%convolved, %pooled, %{chain}) {{padding = \"same\", pool_size = [3 : i64, 3 : i64], strides = [2 : i64, 2 : i64]}} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        pooled
    }

    fn stage(&mut self, input: &Image, stage: &Stage) -> Image {
        let (number, width) = (stage.number, stage.width);
        let extent = input.extent.div_ceil(stage.stride);
        let [through, first, second] =
            ["through", "first", "second"].map(|name| format!("res{number}_{name}"));
        self.tensor(&through, extent, 4 * width);
        self.tensor(&first, extent, width);
        self.tensor(&second, extent, width);
        let mut image = Image {
            name: through.clone(),
            chain: String::new(),
            extent,
        };
        for index in 0..stage.blocks {
            let ([a, b, c], shortcut) = stage.block(index);
            let input = if index == 0 { input } else { &image };
            // The first block's 3x3 may look at a larger image.
            let entry = match input.extent == extent {
                true => first.clone(),
                false => format!("res{number}_entry"),
            };
            if input.extent != extent {
                self.tensor(&entry, input.extent, width);
            }
            let chain = self.convolution(input, &a, 0, &entry, "");
            let within = Image {
                name: entry,
                chain,
                extent: input.extent,
            };
            let needed = ((extent - 1) * b.stride + 3).saturating_sub(input.extent);
            let chain = self.convolution(&within, &b, needed, &second, "");
            let mut within = Image {
                name: second.clone(),
                chain,
                extent,
            };
            if let Some(shortcut) = shortcut {
                let other = self.convolution(input, &shortcut, 0, &through, "");
                let both = format!("{}_both", shortcut.name);
                line!(
                    self.text,
                    "%{both} = tfrt.merge.chains %{}, %{other} : !tfrt.chain, !tfrt.chain",
                    within.chain
                );
                within.chain = both;
            }
            image.chain = self.convolution(&within, &c, 0, &through, ".add");
        }
        image
    }

    /// Writes a convolution into an image, and returns the chain that says that it is there. Around its input come `around`
    /// rows and columns in all, or so many on each side where the window is larger than 3.
    fn convolution(
        &mut self,
        input: &Image,
        convolution: &Convolution,
        around: usize,
        output: &str,
        kind: &str,
    ) -> String {
        let Convolution {
            name, size, stride, ..
        } = convolution;
        let (before, behind) = match size {
            7 => (around, around),
            _ => (around / 2, around - around / 2),
        };
        let activation = match convolution.has_relu || convolution.is_last {
            true => "relu",
            false => "none",
        };
        let (image, chain) = (&input.name, &input.chain);
        line!(
            self.text,
            "%{name}_done = \"cpu.conv2d{kind}.f32\"(%{image}, %{name}_packed, %{output}, %{chain}) {{activation = \"{activation}\", padding = [{before} : i64, {behind} : i64, {before} : i64, {behind} : i64], strides = [{stride} : i64, {stride} : i64]}} : (!t.tensor, !cpu.filter, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        format!("{name}_done")
    }

    /// Writes the making of an image.
    fn tensor(&mut self, name: &str, extent: usize, channels: usize) {
        let batch = self.network.batch;
        line!(
            self.text,
            "%{name} = \"tfrt_dht.create_uninitialized_tensor.f32.4\"() {{shape = [{batch} : i64, {extent} : i64, {extent} : i64, {channels} : i64]}} : () -> !t.tensor"
        );
    }
}
