//! Layers of the network.

use super::ResNet;

/// A convolution with its batch norm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// `conv1`, or `res<stage><block>_branch<branch>`.
    pub name: String,
    /// The height and width of the filter.
    pub size: usize,
    /// The stride, downwards and to the right.
    pub stride: usize,
    /// The channels that it takes.
    pub channels: usize,
    /// The channels that it gives.
    pub filters: usize,
    /// Whether relu follows at once.
    pub has_relu: bool,
    /// Whether its result is added to a shortcut.
    pub is_last: bool,
}

/// Blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// 2 to 5, as they are counted with the first convolution.
    pub number: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// The channels within a block; four times as many leave it.
    pub width: usize,
    /// The channels that come in.
    pub channels: usize,
    /// The stride of its first block.
    pub stride: usize,
}

impl ResNet {
    /// Returns the stages.
    pub fn stages(&self) -> [Stage; 4] {
        [0, 1, 2, 3].map(|index| Stage {
            number: index + 2,
            blocks: self.blocks[index],
            width: self.width << index,
            channels: if index == 0 {
                self.width
            } else {
                (2 * self.width) << index
            },
            stride: if index == 0 { 1 } else { 2 },
        })
    }

    /// Returns the channels of the last stage.
    pub(super) fn features(&self) -> usize {
        self.width * 32
    }

    /// Returns the first convolution.
    pub(super) fn first(&self) -> Convolution {
        Convolution {
            name: "conv1".to_owned(),
            size: 7,
            stride: 2,
            channels: 3,
            filters: self.width,
            has_relu: true,
            is_last: false,
        }
    }

    /// Returns all convolutions, in the order of their weights.
    pub fn convolutions(&self) -> Vec<Convolution> {
        let mut all = vec![self.first()];
        for stage in self.stages() {
            for block in 0..stage.blocks {
                let (branches, shortcut) = stage.block(block);
                all.extend(branches);
                all.extend(shortcut);
            }
        }
        all
    }
}

impl Stage {
    /// Returns the convolutions of a block, and that of its shortcut, if it has one.
    pub(super) fn block(&self, index: usize) -> ([Convolution; 3], Option<Convolution>) {
        let block = format!("res{}_{}", self.number, index + 1);
        let outer = 4 * self.width;
        let channels = if index == 0 { self.channels } else { outer };
        let stride = if index == 0 { self.stride } else { 1 };
        let of = |branch: &str, size, stride, channels, filters| Convolution {
            name: format!("{block}_{branch}"),
            size,
            stride,
            channels,
            filters,
            has_relu: true,
            is_last: false,
        };
        let branches = [
            of("a", 1, 1, channels, self.width),
            of("b", 3, stride, self.width, self.width),
            Convolution {
                has_relu: false,
                is_last: true,
                ..of("c", 1, 1, self.width, outer)
            },
        ];
        let shortcut = (index == 0).then(|| Convolution {
            has_relu: false,
            ..of("shortcut", 1, stride, channels, outer)
        });
        (branches, shortcut)
    }
}
