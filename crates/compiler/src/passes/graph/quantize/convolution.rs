//! Convolutions of what is dequantised whose result is quantised.

use tfrt_bef::DType;
use tfrt_ir::{OpId, OpState};

use super::super::node;
use super::super::rewrite::{self, ROUNDED_ONCE, Rewrite};
use super::{Bias, Scaled, Weights, below_activations, bias, note, zero_of};

/// Makes a convolution of integers of `quantize`, if there is one of what is dequantised before it.
pub(super) fn convolution(rewrite: &mut Rewrite<'_>, op: OpId) -> Option<()> {
    let module = &*rewrite.module;
    if node::name(module, op) != "quantize" {
        return None;
    }
    let result = module.op(op).results()[0];
    let to = Scaled::of(module, op, result)?;
    let conv = below_activations(module, node::operand(module, op, 0)?, &to)?;
    if node::name(module, conv) != "conv" || node::int(module, conv, "transposed", 0) != 0 {
        return None;
    }
    let [x, w] = [0, 1].map(|index| node::operand(module, conv, index));
    let (x, w) = (Scaled::read(module, x?)?, Weights::read(module, w?, 0)?);
    let units: Vec<f64> = w.scales.iter().map(|scale| scale * x.numbers.0).collect();
    let bias = bias(module, node::operand(module, conv, 2), &units, to.numbers.0)?;
    let mut stated = rewrite::stated(module, conv);
    stated.retain(|(name, _)| name.as_str() != "transposed");
    let shapes = module.op(op).attribute("model.shapes").cloned();
    let ty = module.value_type(result).clone();
    let zeros = [x.zero(rewrite, op), to.zero(rewrite, op)];
    let filter_zero = match w.zero {
        Some(zero) => rewrite.mapped(zero),
        None => zero_of(rewrite, w.bytes, op),
    };
    let [x_bytes, x_scale, filter, filter_scale, scale] =
        [x.bytes, x.scale, w.bytes, w.scale, to.scale].map(|value| rewrite.mapped(value));
    let mut state = OpState::new("onnx.QLinearConv").operands([
        x_bytes,
        x_scale,
        zeros[0],
        filter,
        filter_scale,
        filter_zero,
        scale,
        zeros[1],
    ]);
    match bias {
        Bias::Nothing => {}
        Bias::Integers(steps) => state = state.operand(rewrite.mapped(steps)),
        Bias::Rounded(steps) => {
            let steps: Vec<i64> = steps.into_iter().map(i64::from).collect();
            let steps = rewrite.constant(rewrite::integers_of(DType::I32, &steps), op);
            state = state.operand(steps);
        }
    }
    for (name, value) in stated {
        let name = match name.as_str() {
            "groups" => "group".into(),
            _ => name,
        };
        state = state.attribute(name, value);
    }
    if let Some(shapes) = shapes {
        state = state.attribute("model.shapes", shapes);
    }
    let state = state.attribute(ROUNDED_ONCE, note());
    let made = rewrite.add(state.result(ty), op);
    rewrite.values.insert(result, made);
    Some(())
}
