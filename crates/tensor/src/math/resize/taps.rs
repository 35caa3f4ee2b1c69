//! [`Taps`]: elements and weights of each place of the result, along one dimension.

use tfrt_host::Error;

use super::{CoordinateMode, Interpolation, NearestMode, ResizeKernel};

/// Elements and weights for each place.
#[derive(Clone, Debug)]
pub(super) struct Taps {
    /// Start of each place's list; one more than there are places.
    starts: Vec<usize>,
    list: Vec<(usize, f64)>,
}

impl Taps {
    /// Finds the weights for `to` places in `from` elements. Fails if there is no memory for them.
    pub(super) fn new(
        interpolation: &Interpolation,
        from: usize,
        to: usize,
    ) -> Result<Taps, Error> {
        Taps::collect(to, |index, list| push(interpolation, index, from, to, list))
    }

    /// Collects the elements and weights of so many places: `append` appends those of one.
    pub(super) fn collect(
        n_places: usize,
        mut append: impl FnMut(usize, &mut Vec<(usize, f64)>) -> Result<(), Error>,
    ) -> Result<Taps, Error> {
        let mut starts = room_for(n_places.saturating_add(1))?;
        starts.push(0);
        let mut list = Vec::new();
        for index in 0..n_places {
            append(index, &mut list)?;
            starts.push(list.len());
        }
        Ok(Taps { starts, list })
    }

    /// Returns the number of places.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the elements that a place is made of, and their weights.
    pub(super) fn of(&self, place: usize) -> impl ExactSizeIterator<Item = (usize, f64)> + '_ {
        self.slice(place).iter().copied()
    }

    /// Returns the elements that a place is made of, and their weights, as a slice.
    pub(super) fn slice(&self, place: usize) -> &[(usize, f64)] {
        &self.list[self.starts[place]..self.starts[place + 1]]
    }

    /// Returns the elements and weights of all places, one place after the other.
    pub(super) fn all(&self) -> &[(usize, f64)] {
        &self.list
    }

    /// Returns the most that a place is made of.
    pub(super) fn most(&self) -> usize {
        let lens = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        lens.max().unwrap_or(1)
    }
}

/// Returns a list with room for `n_entries` entries. Extents come from outside, so memory may be missing.
pub(super) fn room_for<T>(n_entries: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    make_room(&mut list, n_entries)?;
    Ok(list)
}

pub(super) fn make_room<T>(list: &mut Vec<T>, n_more: usize) -> Result<(), Error> {
    list.try_reserve(n_more).map_err(|_| {
        let message = format!("there is no memory for {n_more} more places of a resized dimension");
        Error::resource_exhausted(message)
    })
}

fn float(value: usize) -> f64 {
    // Extents beyond 2^53 are of no picture.
    #[allow(clippy::cast_precision_loss, reason = "see above")]
    let float = value as f64;
    float
}

/// Returns the nearest whole number below, of what is not far outside.
fn whole(value: f64) -> i64 {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it is whole; else the range's end"
    )]
    let whole = value.floor() as i64;
    whole
}

/// Returns the place in the input of a place of the result.
pub(super) fn position(coordinates: CoordinateMode, index: usize, from: usize, to: usize) -> f64 {
    let (place, scale) = (float(index), float(to) / float(from));
    match coordinates {
        CoordinateMode::HalfPixel => (place + 0.5) / scale - 0.5,
        CoordinateMode::PytorchHalfPixel if to > 1 => (place + 0.5) / scale - 0.5,
        CoordinateMode::AlignCorners if to > 1 => place * float(from - 1) / float(to - 1),
        CoordinateMode::Asymmetric => place / scale,
        CoordinateMode::PytorchHalfPixel | CoordinateMode::AlignCorners => 0.0,
    }
}

/// Returns the element that is nearest to a place.
pub(super) fn nearest(
    coordinates: CoordinateMode,
    rounding: NearestMode,
    index: usize,
    from: usize,
    to: usize,
) -> usize {
    let x = position(coordinates, index, from, to);
    let rounded = match rounding {
        NearestMode::Floor => x.floor(),
        NearestMode::Ceil => x.ceil(),
        NearestMode::HalfDown => (x - 0.5).ceil(),
        NearestMode::HalfUp => (x + 0.5).floor(),
    };
    within(whole(rounded), from)
}

/// Returns the position, or the outermost one on its side.
fn within(position: i64, extent: usize) -> usize {
    let last = extent.saturating_sub(1);
    usize::try_from(position).map_or(0, |position| position.min(last))
}

/// Appends the elements and weights of one place.
fn push(
    interpolation: &Interpolation,
    index: usize,
    from: usize,
    to: usize,
    list: &mut Vec<(usize, f64)>,
) -> Result<(), Error> {
    let x = position(interpolation.coordinates, index, from, to);
    // A picture that becomes smaller is looked at through a wider kernel.
    let scale = match interpolation.antialias {
        true => (float(to) / float(from)).min(1.0),
        false => 1.0,
    };
    let reach = match interpolation.kernel {
        ResizeKernel::Linear => 1.0,
        ResizeKernel::Cubic(_) => 2.0,
    };
    let (least, most) = (
        whole(x - reach / scale),
        whole(x + reach / scale).saturating_add(1),
    );
    let start = list.len();
    make_room(
        list,
        usize::try_from(most.saturating_sub(least))
            .unwrap_or(0)
            .saturating_add(1),
    )?;
    for element in least..=most {
        #[allow(
            clippy::cast_precision_loss,
            reason = "it is not far from a place of a picture"
        )]
        let distance = ((element as f64 - x) * scale).abs();
        let weight = weight(interpolation.kernel, distance);
        let place = within(element, from);
        let is_outside = i64::try_from(place).is_ok_and(|place| place != element);
        if weight == 0.0 || (interpolation.exclude_outside && is_outside) {
            continue;
        }
        match list[start..].last_mut() {
            Some(last) if last.0 == place => last.1 += weight,
            _ => list.push((place, weight)),
        }
    }
    let sum: f64 = list[start..].iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut list[start..] {
        *weight /= sum;
    }
    Ok(())
}

/// Returns the weight of an element at a distance.
fn weight(kernel: ResizeKernel, d: f64) -> f64 {
    match kernel {
        ResizeKernel::Linear => (1.0 - d).max(0.0),
        // Keys' convolution: one polynomial next to the place, another behind.
        ResizeKernel::Cubic(a) if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
        ResizeKernel::Cubic(a) if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
        ResizeKernel::Cubic(_) => 0.0,
    }
}
