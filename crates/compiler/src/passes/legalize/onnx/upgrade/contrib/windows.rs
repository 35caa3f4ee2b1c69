//! Operators on windows of small integers, whose channels may come last.
//!
//! | Operator | Becomes, between transpositions where channels come last |
//! | --- | --- |
//! | `QLinearConv` | that of the standard |
//! | `NhwcMaxPool` | `MaxPool` |
//! | `QLinearAveragePool`, `QLinearGlobalAveragePool` | `AveragePool`, `GlobalAveragePool` of whole numbers |

use tfrt_ir::{Attribute, ValueId};

use super::super::node::ints;
use super::quantized::Unscaled;
use super::{Expansion, Made, Refusal};

pub(super) fn conv(here: &mut Expansion<'_>) -> Made {
    let names = [
        "x",
        "x_scale",
        "x_zero_point",
        "w",
        "w_scale",
        "w_zero_point",
        "y_scale",
        "y_zero_point",
    ];
    let mut operands = Vec::new();
    for (index, name) in names.iter().enumerate() {
        operands.push(here.needed(index, name)?);
    }
    operands.extend(here.input(8));
    let attributes = here.stated(&[
        "auto_pad",
        "dilations",
        "group",
        "kernel_shape",
        "pads",
        "strides",
    ]);
    let rank = here.rank(operands[3]).or(here.rank(operands[0]));
    let order = order(here, rank)?;
    operands[0] = order.channels_first(here, operands[0]);
    let y = here.add("QLinearConv", &operands, &attributes);
    Ok(vec![Some(order.given_back(here, y))])
}

pub(super) fn max_pool(here: &mut Expansion<'_>) -> Made {
    let attributes = here.stated(&[
        "auto_pad",
        "ceil_mode",
        "dilations",
        "kernel_shape",
        "pads",
        "strides",
    ]);
    let order = Order::last(window_rank(here))?;
    let x = here.needed(0, "x")?;
    let x = order.channels_first(here, x);
    let y = here.add("MaxPool", &[x], &attributes);
    Ok(vec![Some(order.given_back(here, y))])
}

pub(super) fn average_pool(here: &mut Expansion<'_>) -> Made {
    let attributes = here.stated(&[
        "auto_pad",
        "ceil_mode",
        "count_include_pad",
        "kernel_shape",
        "pads",
        "strides",
    ]);
    let rank = window_rank(here);
    mean(here, "AveragePool", &attributes, rank)
}

pub(super) fn global_average_pool(here: &mut Expansion<'_>) -> Made {
    let x = here.needed(0, "X")?;
    let rank = here.rank(x);
    mean(here, "GlobalAveragePool", &[], rank)
}

fn mean(
    here: &mut Expansion<'_>,
    name: &str,
    attributes: &[(&'static str, Attribute)],
    rank: Option<usize>,
) -> Made {
    let order = order(here, rank)?;
    let x = Unscaled::at(here, 0, "X")?;
    let numbers = order.channels_first(here, x.numbers);
    let y = here.add(name, &[numbers], attributes);
    let y = order.given_back(here, y);
    x.mean(here, y, 3)
}

/// The order in which an operator has its dimensions.
enum Order {
    ChannelsFirst,
    /// Channels come last, of as many dimensions.
    ChannelsLast(i64),
}

/// Returns the order that the attribute `channels_last` says, of operands of a rank.
fn order(here: &Expansion<'_>, rank: Option<usize>) -> Result<Order, Refusal> {
    match here.int("channels_last", 0) {
        0 => Ok(Order::ChannelsFirst),
        _ => Order::last(rank),
    }
}

/// Returns the rank that the extents of a window say.
fn window_rank(here: &Expansion<'_>) -> Option<usize> {
    ints(here.module, here.like, "kernel_shape").map(|window| window.len() + 2)
}

impl Order {
    fn last(rank: Option<usize>) -> Result<Order, Refusal> {
        let rank = rank.and_then(|rank| i64::try_from(rank).ok());
        match rank.filter(|rank| *rank > 2) {
            Some(rank) => Ok(Order::ChannelsLast(rank)),
            None => {
                let message = "channels come last in an operand of unknown rank";
                Err(Refusal::Unknown(message.to_owned()))
            }
        }
    }

    /// Appends an operand with its channels first.
    fn channels_first(&self, here: &mut Expansion<'_>, x: ValueId) -> ValueId {
        match *self {
            Order::ChannelsFirst => x,
            Order::ChannelsLast(rank) => {
                let first: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
                here.transposed(x, &first)
            }
        }
    }

    /// Appends a result, whose channels are first, in the order of the operator.
    fn given_back(&self, here: &mut Expansion<'_>, y: ValueId) -> ValueId {
        match *self {
            Order::ChannelsFirst => y,
            Order::ChannelsLast(rank) => {
                let last: Vec<i64> = [0].into_iter().chain(2..rank).chain([1]).collect();
                here.transposed(y, &last)
            }
        }
    }
}
