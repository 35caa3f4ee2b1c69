//! Launches of kernels of windows: convolutions and pools.

use tfrt_host::Error;
use tfrt_host::device::DeviceSlice;

use super::{Launch, Part, address, count, linear, shared};
use crate::driver::{Argument, Grid};

/// Windows over an image of three spatial dimensions, the outer ones of which may be 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    pub(crate) image: [usize; 3],
    pub(crate) result: [usize; 3],
    pub(crate) window: [usize; 3],
    pub(crate) strides: [usize; 3],
    pub(crate) dilations: [usize; 3],
    /// Padding in front.
    pub(crate) front: [usize; 3],
}

impl Windows {
    fn words(&self) -> impl Iterator<Item = u32> {
        let front = self.front;
        let lists = [
            self.image,
            self.result,
            self.window,
            self.strides,
            self.dilations,
            front,
        ];
        lists.into_iter().flatten().map(count)
    }

    /// Returns an error where places around the image are more than a kernel counts.
    fn expect_small(&self) -> Result<(), Error> {
        let last = |at: usize| {
            let windows = self.result[at].saturating_mul(self.strides[at]);
            let reach = self.window[at].saturating_mul(self.dilations[at]);
            windows
                .saturating_add(reach)
                .saturating_add(self.image[at])
                .saturating_add(self.front[at])
        };
        match (0..3).map(last).max() {
            Some(most) if most >= super::MOST => Err(Error::invalid_argument(format!(
                "windows that reach over {most} elements are more than a kernel counts"
            ))),
            _ => Ok(()),
        }
    }
}

/// A convolution of images; channels are those of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conv {
    pub(crate) n_images: usize,
    pub(crate) groups: usize,
    pub(crate) c_in: usize,
    pub(crate) c_out: usize,
    pub(crate) is_transposed: bool,
    pub(crate) windows: Windows,
}

/// Calculates a convolution.
pub(crate) fn conv(
    y: &DeviceSlice,
    x: &DeviceSlice,
    filter: &DeviceSlice,
    bias: Option<&DeviceSlice>,
    conv: Conv,
) -> Result<(), Error> {
    let Conv {
        n_images,
        groups,
        c_in,
        c_out,
        is_transposed,
        windows,
    } = conv;
    let product = |factors: &[usize]| {
        factors
            .iter()
            .fold(1_usize, |all, n| all.saturating_mul(*n))
    };
    let [image, places, window] =
        [windows.image, windows.result, windows.window].map(|it| product(&it));
    let n = product(&[n_images, groups, c_out, places]);
    if n == 0 {
        return Ok(());
    }
    windows.expect_small()?;
    let n_seen = product(&[c_in, window]);
    let pointers = [
        address(y, n, 4)?,
        address(x, product(&[n_images, groups, c_in, image]), 4)?,
        address(filter, product(&[groups, c_out, n_seen]), 4)?,
    ]
    .map(|at| Argument::Pointer(Some(at)));
    let bias = match bias {
        Some(bias) => Some(address(bias, groups * c_out, 4)?),
        None => None,
    };
    let n_products = n_images.saturating_mul(groups);
    let is_tiled = !is_transposed && c_out >= 16 && n_seen >= 16 && n_products <= 65535;
    let (name, grid) = match (is_transposed, is_tiled) {
        (true, _) => ("conv_transposed_f32", linear(n)),
        (false, false) => ("conv_f32", linear(n)),
        (false, true) => {
            let blocks = [places.div_ceil(64), c_out.div_ceil(64), n_products].map(count);
            let grid = Grid {
                blocks,
                threads: [256, 1, 1],
                shared_bytes: 0,
            };
            ("conv_64_f32", grid)
        }
    };
    let words = [n, c_in, c_out, groups].map(count);
    let layout: Vec<u8> = words
        .into_iter()
        .chain(windows.words())
        .flat_map(u32::to_ne_bytes)
        .collect();
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Windows,
        name,
        grid,
    };
    let arguments = [
        pointers[0],
        pointers[1],
        pointers[2],
        Argument::Pointer(bias),
        Argument::Bytes(&layout),
    ];
    // SAFETY: the kernels write the `n` elements of the result, and read those of the image that lie within its extents,
    // those of the filter whose channels and place lie within the window, and a number of the bias for each channel, all
    // of which are there.
    unsafe { launch.run(&arguments) }
}

/// A pool of images, of which there is one for each channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pool {
    pub(crate) n_images: usize,
    /// Whether padding counts in means.
    pub(crate) counts: bool,
    /// Padding behind that counts.
    pub(crate) behind: [usize; 3],
    /// The exponent of a norm.
    pub(crate) exponent: f32,
    pub(crate) windows: Windows,
}

/// Calculates a pool, by the kernel `pool_KIND_f32`.
pub(crate) fn pool(
    name: &'static str,
    y: &DeviceSlice,
    x: &DeviceSlice,
    pool: Pool,
) -> Result<(), Error> {
    let windows = pool.windows;
    let of_all = |extents: [usize; 3]| {
        extents
            .iter()
            .fold(pool.n_images, |all, n| all.saturating_mul(*n))
    };
    let n = of_all(windows.result);
    if n == 0 {
        return Ok(());
    }
    windows.expect_small()?;
    let pointers = [address(y, n, 4)?, address(x, of_all(windows.image), 4)?]
        .map(|at| Argument::Pointer(Some(at)));
    let [b0, b1, b2] = pool.behind.map(count);
    let head = [count(n), u32::from(pool.counts), b0, b1, b2];
    let layout: Vec<u8> = head
        .into_iter()
        .chain([pool.exponent.to_bits()])
        .chain(windows.words())
        .flat_map(u32::to_ne_bytes)
        .collect();
    let launch = Launch {
        shared: shared(y)?,
        part: Part::Windows,
        name,
        grid: linear(n),
    };
    // SAFETY: the kernels write the `n` elements of the result, and read those of images that lie within their extents, all
    // of which are there.
    unsafe { launch.run(&[pointers[0], pointers[1], Argument::Bytes(&layout)]) }
}
