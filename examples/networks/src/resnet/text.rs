//! The functions of the program.

use std::fmt::Write;

use super::{Convolution, Form, ResNet};

/// Writes a line of a function.
macro_rules! line {
    ($text:expr, $($part:tt)*) => {
        writeln!($text, "  {}", format_args!($($part)*)).expect("a string takes all")
    };
}

/// Writes the function that reads the weights.
pub(super) fn weights(network: &ResNet, text: &mut String) {
    let names = network.names();
    let types = vec!["!t.tensor"; names.len()].join(", ");
    let mut begin = |line: &str| writeln!(text, "{line}").expect("a string takes all");
    begin(&format!(
        "func.func @weights(%path: !tfrt.string) -> ({types}) {{"
    ));
    for (index, name) in names.iter().enumerate() {
        let rank = match name.rsplit('_').next() {
            Some("filter") => 4,
            Some("weight") => 2,
            _ => 1,
        };
        line!(text, "%{name}_index = tfrt.constant.i32 {}", index + 1);
        line!(
            text,
            "%{name} = \"btf.read_dense_tensor.f32.{rank}\"(%path, %{name}_index) : (!tfrt.string, i32) -> !t.tensor"
        );
    }
    let values: Vec<String> = names.iter().map(|name| format!("%{name}")).collect();
    line!(text, "tfrt.return {} : {types}", values.join(", "));
    text.push_str("}\n\n");
}

/// Writes the function that prints the logits of the file's images.
pub(super) fn main(network: &ResNet, path: &str, text: &mut String) {
    let n_weights = network.names().len();
    let types = vec!["!t.tensor"; n_weights].join(", ");
    let path: String = path.chars().map(escaped).collect();
    text.push_str("func.func @main() -> !tfrt.chain {\n");
    line!(
        text,
        "%path = \"tfrt_test.get_string\"() {{value = \"{path}\"}} : () -> !tfrt.string"
    );
    line!(text, "%zero = tfrt.constant.i32 0");
    line!(
        text,
        "%images = \"btf.read_dense_tensor.f32.4\"(%path, %zero) : (!tfrt.string, i32) -> !t.tensor"
    );
    line!(
        text,
        "%weights:{n_weights} = tfrt.call @weights(%path) : (!tfrt.string) -> ({types})"
    );
    let all = |name: &str, n: usize| -> String {
        let values: Vec<String> = (0..n).map(|index| format!("%{name}#{index}")).collect();
        values.join(", ")
    };
    let mut weights = (all("weights", n_weights), types);
    if network.form == Form::Packed {
        let packed = super::packed::types(network);
        let n_packed = packed.split(", ").count();
        let (values, types) = &weights;
        line!(
            text,
            "%packed:{n_packed} = tfrt.call @pack({values}) : ({types}) -> ({packed})"
        );
        weights = (all("packed", n_packed), packed);
    }
    let (values, types) = weights;
    line!(
        text,
        "%logits, %done = tfrt.call @infer(%images, {values}) : (!t.tensor, {types}) -> (!t.tensor, !tfrt.chain)"
    );
    line!(text, "%printed = tfrt_dht.print_tensor %logits, %done");
    line!(text, "tfrt.return %printed : !tfrt.chain");
    text.push_str("}\n");
}

/// Returns a character within a string of the program.
fn escaped(character: char) -> String {
    match character {
        '"' | '\\' => format!("\\{character}"),
        character if character.is_ascii_control() => format!("\\{:02X}", u32::from(character)),
        character => character.to_string(),
    }
}

/// Writes the function that the network is.
pub(super) fn infer(network: &ResNet, text: &mut String) {
    let names = network.names();
    let parameters: Vec<String> = names
        .iter()
        .map(|name| format!("%{name}: !t.tensor"))
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

/// A tensor, and the chain that says that it is there.
#[derive(Clone)]
struct Image {
    name: String,
    chain: String,
    extent: usize,
    channels: usize,
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
            for index in 0..stage.blocks {
                image = self.block(&image, &stage.block(index));
            }
        }
        let Image {
            name,
            chain,
            channels,
            ..
        } = image;
        let tensor = "\"tfrt_dht.create_uninitialized_tensor.f32.2\"()";
        line!(
            self.text,
            "%features = {tensor} {{shape = [{batch} : i64, {channels} : i64]}} : () -> !t.tensor"
        );
        line!(
            self.text,
            "%features_done = \"tfrt_test.global_average_pooling.f32\"(%{name}, %features, %{chain}) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        line!(
            self.text,
            "%logits_shape = ts.build_shape [{batch} : i64, {classes} : i64]"
        );
        line!(
            self.text,
            "%logits = \"tfrt_test.broadcast.f32.2\"(%fc_bias, %logits_shape, %start) : (!t.tensor, !ts.shape, !tfrt.chain) -> !t.tensor"
        );
        line!(self.text, "%one = tfrt.constant.f32 1.0");
        line!(
            self.text,
            "%done = \"eigen.matmul.f32\"(%one, %features, %fc_weight, %one, %logits, %features_done) : (f32, !t.tensor, !t.tensor, f32, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        line!(
            self.text,
            "tfrt.return %logits, %done : !t.tensor, !tfrt.chain"
        );
    }

    /// Writes the layers before the stages.
    fn stem(&mut self) -> Image {
        let padded = Image {
            name: "padded".to_owned(),
            chain: "padded_done".to_owned(),
            extent: self.network.image + 6,
            channels: 3,
        };
        self.tensor(&padded);
        line!(
            self.text,
            "%padded_done = \"eigen.zero_padding.f32\"(%images, %padded, %start) {{padding = [3 : i64, 3 : i64]}} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        let first = self.convolution(&padded, &self.network.first());
        let pooled = Image {
            name: "pooled".to_owned(),
            chain: "pooled_done".to_owned(),
            extent: first.extent.div_ceil(2),
            channels: first.channels,
        };
        self.tensor(&pooled);
        let Image { name, chain, .. } = first;
        line!(
            self.text,
            "%pooled_done = \"eigen.max_pooling_2d.f32\"(%{name}, %pooled, %{chain}) {{padding = \"same\", pool_size = [3 : i64, 3 : i64], strides = [2 : i64, 2 : i64]}} : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        pooled
    }

    fn block(
        &mut self,
        input: &Image,
        (branches, shortcut): &([Convolution; 3], Option<Convolution>),
    ) -> Image {
        let mut image = input.clone();
        for convolution in branches {
            image = self.convolution(&image, convolution);
        }
        let Image { name, chain, .. } = &image;
        // What the branch has waited for, the input is there, too.
        let (other, chain) = match shortcut {
            None => (input.name.clone(), chain.clone()),
            Some(convolution) => {
                let shortcut = self.convolution(input, convolution);
                line!(
                    self.text,
                    "%{name}_both = tfrt.merge.chains %{chain}, %{} : !tfrt.chain, !tfrt.chain",
                    shortcut.chain
                );
                (shortcut.name, format!("{name}_both"))
            }
        };
        line!(
            self.text,
            "%{name}_sum = \"tfrt_test.add_inplace.f32\"(%{other}, %{name}, %{chain}) : (!t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        let sum = Image {
            chain: format!("{name}_sum"),
            ..image
        };
        self.relu(sum)
    }

    /// Writes a convolution with its batch norm, and relu if it has that.
    fn convolution(&mut self, input: &Image, convolution: &Convolution) -> Image {
        let Convolution {
            name,
            size,
            stride,
            filters,
            has_relu,
            ..
        } = convolution;
        // The first one's image was padded; of the others only those of 3x3 look beyond the edges.
        let (padding, extent) = if *size == 3 {
            ("same", input.extent.div_ceil(*stride))
        } else {
            ("valid", input.extent.saturating_sub(*size) / stride + 1)
        };
        let output = Image {
            name: name.clone(),
            chain: format!("{name}_done"),
            extent,
            channels: *filters,
        };
        self.tensor(&output);
        let attributes =
            format!("padding = \"{padding}\", strides = [{stride} : i64, {stride} : i64]");
        let (image, chain) = (&input.name, &input.chain);
        let parts = format!("%{name}_scale, %{name}_shift, %{name}_mean, %{name}_variance");
        let four = "!t.tensor, !t.tensor, !t.tensor, !t.tensor";
        if self.network.form == Form::Fused {
            let relu = if *has_relu { ".relu" } else { "" };
            line!(
                self.text,
                "%{name}_done = \"eigen.conv2d.batch_norm{relu}.f32\"(%{image}, %{name}_filter, {parts}, %{name}, %{chain}) {{epsilon = 0.00001 : f32, {attributes}}} : (!t.tensor, !t.tensor, {four}, !t.tensor, !tfrt.chain) -> !tfrt.chain"
            );
            return output;
        }
        line!(
            self.text,
            "%{name}_convolved = \"eigen.conv2d.f32\"(%{image}, %{name}_filter, %{name}, %{chain}) {{{attributes}}} : (!t.tensor, !t.tensor, !t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        line!(
            self.text,
            "%{name}_done = \"eigen.batch_norm.f32\"(%{name}, {parts}, %{name}_convolved) {{epsilon = 0.00001 : f32}} : (!t.tensor, {four}, !tfrt.chain) -> !tfrt.chain"
        );
        if *has_relu { self.relu(output) } else { output }
    }

    fn relu(&mut self, image: Image) -> Image {
        let Image { name, chain, .. } = &image;
        line!(
            self.text,
            "%{name}_relu = \"tfrt_test.relu_inplace.f32\"(%{name}, %{chain}) : (!t.tensor, !tfrt.chain) -> !tfrt.chain"
        );
        Image {
            chain: format!("{name}_relu"),
            ..image
        }
    }

    /// Writes the making of a tensor.
    fn tensor(&mut self, image: &Image) {
        let (
            batch,
            Image {
                name,
                extent,
                channels,
                ..
            },
        ) = (self.network.batch, image);
        line!(
            self.text,
            "%{name} = \"tfrt_dht.create_uninitialized_tensor.f32.4\"() {{shape = [{batch} : i64, {extent} : i64, {extent} : i64, {channels} : i64]}} : () -> !t.tensor"
        );
    }
}
