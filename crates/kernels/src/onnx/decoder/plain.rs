//! Formats without compression: BMP, PNM.

use std::sync::Arc;

use tfrt_host::{Error, HostAllocator};

use super::{Picture, failed};

/// Decodes a BMP of 8 (with a palette), 24 or 32 bits a pixel, whose rows begin at the bottom, or at the top if the
/// height is below 0.
pub(super) fn bmp(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Picture, Error> {
    let (start, header_len) = (word(bytes, 10)?, word(bytes, 14)?);
    if header_len < 40 {
        return Err(failed(format_args!(
            "its header has {header_len} bytes, expected 40 or more"
        )));
    }
    let (width, height) = (
        word(bytes, 18)?.cast_signed(),
        word(bytes, 22)?.cast_signed(),
    );
    let (bits, compression) = (word(bytes, 28)? & 0xffff, word(bytes, 30)?);
    // 3 says where the channels are; of 32 bits they are where they are without that.
    if compression != 0 && !(compression == 3 && bits == 32) {
        return Err(failed(format_args!(
            "it is compressed in way {compression}"
        )));
    }
    let n_bytes = match bits {
        8 | 24 | 32 => bits as usize / 8,
        _ => {
            return Err(failed(format_args!(
                "it has {bits} bits a pixel, expected 8, 24 or 32"
            )));
        }
    };
    let width = usize::try_from(width).map_err(|_| failed("its width is below 0"))?;
    let is_from_below = height > 0;
    let extents = [width, height.unsigned_abs() as usize, 3];
    let mut picture = Picture::new(extents, 0, allocator)?;
    // Rows are filled up to whole words.
    let stride = (width * n_bytes).next_multiple_of(4);
    let palette = bytes.get(14 + header_len as usize..).unwrap_or(&[]);
    let rows = picture
        .pixels
        .chunks_exact_mut((width * 3).max(1))
        .enumerate();
    let n_rows = picture.height;
    for (row, out) in rows {
        let place = if is_from_below { n_rows - 1 - row } else { row };
        let start = (start as usize).saturating_add(place.saturating_mul(stride));
        let from = bytes.get(start..start.saturating_add(width * n_bytes));
        let from = from.ok_or_else(|| failed("it ends before its last row"))?;
        for (out, pixel) in out.chunks_exact_mut(3).zip(from.chunks_exact(n_bytes)) {
            let color = match pixel {
                [index] => {
                    let place = usize::from(*index) * 4;
                    palette
                        .get(place..place + 3)
                        .ok_or_else(|| failed("its palette is too short"))?
                }
                color => &color[..3],
            };
            out.copy_from_slice(&[color[2], color[1], color[0]]);
        }
    }
    Ok(picture)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Error> {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map(u32::from_le_bytes)
        .ok_or_else(|| failed("it ends within its header"))
}

/// Decodes a PNM: `P1` to `P3` as text, `P4` to `P6` as bytes; black and white, gray, or of colours.
pub(super) fn pnm(bytes: &[u8], allocator: &Arc<dyn HostAllocator>) -> Result<Picture, Error> {
    let kind = bytes.get(1).copied().unwrap_or(b'0') - b'0';
    let mut tokens = Tokens { rest: &bytes[2..] };
    let (width, height) = (tokens.number()?, tokens.number()?);
    let (is_bits, n_channels) = match kind {
        1 | 4 => (true, 1),
        2 | 5 => (false, 1),
        _ => (false, 3),
    };
    let most = if is_bits { 1 } else { tokens.number()? };
    if most == 0 || most > 65535 {
        return Err(failed(format_args!(
            "its greatest value is {most}, expected one from 1 to 65535"
        )));
    }
    let mut picture = Picture::new([width, height, n_channels], 0, allocator)?;
    let scaled = |value: usize| match most {
        255 => u8::try_from(value).unwrap_or(u8::MAX),
        _ => u8::try_from((value.min(most) * 255 + most / 2) / most).unwrap_or(u8::MAX),
    };
    // In maps of bits 1 is black.
    let pixel = |value: usize| {
        if is_bits {
            scaled(1 - value.min(1))
        } else {
            scaled(value)
        }
    };
    if kind < 4 {
        for out in &mut picture.pixels {
            *out = pixel(if is_bits {
                tokens.bit()?
            } else {
                tokens.number()?
            });
        }
        return Ok(picture);
    }
    // One blank ends the header.
    let body = tokens.rest.get(1..).unwrap_or(&[]);
    let short = || failed("it ends before its last row");
    let row_len = (width * n_channels).max(1);
    for (row, out) in picture.pixels.chunks_exact_mut(row_len).enumerate() {
        for (index, out) in out.iter_mut().enumerate() {
            let value = if is_bits {
                let byte = body
                    .get(row * width.div_ceil(8) + index / 8)
                    .ok_or_else(short)?;
                usize::from(byte >> (7 - index % 8)) & 1
            } else if most < 256 {
                usize::from(*body.get(row * row_len + index).ok_or_else(short)?)
            } else {
                let place = (row * row_len + index) * 2;
                let pair = body.get(place..place + 2).ok_or_else(short)?;
                usize::from(pair[0]) * 256 + usize::from(pair[1])
            };
            *out = pixel(value);
        }
    }
    Ok(picture)
}

/// A reader of numbers between blanks and comments.
struct Tokens<'b> {
    rest: &'b [u8],
}

impl Tokens<'_> {
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if self.rest.first() != Some(&b'#') {
                return;
            }
            let end = self
                .rest
                .iter()
                .position(|byte| *byte == b'\n')
                .unwrap_or(self.rest.len());
            self.rest = &self.rest[end..];
        }
    }

    fn number(&mut self) -> Result<usize, Error> {
        self.skip();
        let n_digits = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.rest.split_at(n_digits);
        self.rest = rest;
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        number.ok_or_else(|| failed("a number is expected where there is none"))
    }

    /// Reads a digit, which may stand directly beside the next.
    fn bit(&mut self) -> Result<usize, Error> {
        self.skip();
        let (first, rest) = self
            .rest
            .split_first()
            .ok_or_else(|| failed("it ends before its last row"))?;
        self.rest = rest;
        match first {
            b'0' => Ok(0),
            b'1' => Ok(1),
            _ => Err(failed("0 or 1 is expected where there is something else")),
        }
    }
}
