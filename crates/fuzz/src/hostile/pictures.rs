//! Pictures in files of a few bytes that claim to be large, one for each format that `ImageDecoder`
//! knows.

/// Returns a program that decodes a picture, whose bytes it has in itself.
pub fn program(picture: &[u8]) -> String {
    let digits: String = picture.iter().map(|byte| format!("{byte:02X}")).collect();
    let n = picture.len();
    format!(
        "func.func @main() -> !t.tensor {{
  %x = \"cpu.onnx.Constant\"() {{value = dense<\"0x{digits}\"> : tensor<{n}xui8>}} : () -> !t.tensor
  %y = \"cpu.onnx.ImageDecoder\"(%x) {{attributes = [], opset = 20 : i64}} : (!t.tensor) -> !t.tensor
  tfrt.return %y : !t.tensor
}}
"
    )
}

/// Returns the names and bytes of pictures of so many rows and columns.
pub fn promises(extent: u16) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("BMP", bmp(extent)),
        ("PNM", format!("P6 {extent} {extent} 255\n").into_bytes()),
        ("PNG", png(extent)),
        ("JPEG in passes", jpeg(extent)),
        ("WebP", webp(b"VP8 ", &lossy(extent))),
        ("WebP without loss", webp(b"VP8L", &lossless(extent))),
        ("TIFF", tiff(extent, 1)),
        ("TIFF of many strips", tiff(16, 1 << 22)),
        ("JPEG 2000", jpeg_2000(extent)),
    ]
}

fn bmp(extent: u16) -> Vec<u8> {
    let mut bytes = b"BM".to_vec();
    for word in [54, 0, 54, 40, extent.into(), extent.into()] {
        bytes.extend(u32::to_le_bytes(word));
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.resize(54, 0);
    bytes
}

fn png(extent: u16) -> Vec<u8> {
    let mut head = Vec::new();
    head.extend(u32::from(extent).to_be_bytes());
    head.extend(u32::from(extent).to_be_bytes());
    // Colours of 8 bits.
    head.extend([8, 2, 0, 0, 0]);
    // A block of DEFLATE that is empty, and not the last.
    let pixels = [0x78, 0x01, 0x00, 0x00, 0x00, 0xff, 0xff];
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, body) in [(b"IHDR", &head[..]), (b"IDAT", &pixels), (b"IEND", &[])] {
        bytes.extend(u32::try_from(body.len()).unwrap_or(0).to_be_bytes());
        let start = bytes.len();
        bytes.extend(kind);
        bytes.extend(body);
        let sum = crc_32(&bytes[start..]);
        bytes.extend(sum.to_be_bytes());
    }
    bytes
}

/// Returns the sum of checks that PNG has of its parts (ISO 3309).
fn crc_32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    })
}

fn jpeg(extent: u16) -> Vec<u8> {
    let [high, low] = extent.to_be_bytes();
    let mut bytes = vec![0xff, 0xd8];
    // Steps of 1, and a table with one code.
    bytes.extend([0xff, 0xdb, 0, 67, 0]);
    bytes.extend([1; 64]);
    bytes.extend([0xff, 0xc2, 0, 17, 8, high, low, high, low, 3]);
    bytes.extend([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    bytes.extend([0xff, 0xc4, 0, 20, 0, 1]);
    bytes.extend([0; 15]);
    bytes.push(0);
    // The first pass of all components.
    bytes.extend([0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0]);
    bytes.extend([0; 64]);
    bytes.extend([0xff, 0xd9]);
    bytes
}

fn webp(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap_or(0);
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((len + 12).to_le_bytes());
    bytes.extend(b"WEBP");
    bytes.extend(kind);
    bytes.extend(len.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// Returns a key frame: 3 bytes of its kind, 3 of a signature, the extents, and a first part of 64
/// bytes.
fn lossy(extent: u16) -> Vec<u8> {
    let kind: u32 = 0b1_0000 | 64 << 5;
    let mut bytes = kind.to_le_bytes()[..3].to_vec();
    bytes.extend([0x9d, 0x01, 0x2a]);
    bytes.extend((extent & 0x3fff).to_le_bytes());
    bytes.extend((extent & 0x3fff).to_le_bytes());
    bytes.resize(bytes.len() + 256, 0);
    bytes
}

/// Returns a signature, the extents less one of 14 bits each, and no transforms, caches or codes.
fn lossless(extent: u16) -> Vec<u8> {
    let extent = u32::from(extent & 0x3fff) - 1;
    let mut bytes = vec![0x2f];
    bytes.extend((extent | extent << 14).to_le_bytes());
    bytes.resize(bytes.len() + 256, 0);
    bytes
}

/// Returns colours without compression, said to lie in so many strips.
fn tiff(extent: u16, n_strips: u32) -> Vec<u8> {
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    let extent = u32::from(extent);
    let entries = [
        (256, LONG, 1, extent),
        (257, LONG, 1, extent),
        // Three samples of 8 bits, which stand behind the entries.
        (258, SHORT, 3, 8 + 2 + 12 * 9 + 4),
        (259, SHORT, 1, 1),
        (262, SHORT, 1, 2),
        (273, LONG, n_strips, 8),
        (277, SHORT, 1, 3),
        (278, LONG, 1, extent),
        (279, LONG, n_strips, 16),
    ];
    let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
    bytes.extend([9, 0]);
    for (tag, ty, n, value) in entries {
        bytes.extend(u16::to_le_bytes(tag));
        bytes.extend(ty.to_le_bytes());
        bytes.extend(u32::to_le_bytes(n));
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0, 0, 0, 0, 8, 0, 8, 0, 8, 0]);
    bytes
}

/// Returns one tile of three components, of which there is nothing.
fn jpeg_2000(extent: u16) -> Vec<u8> {
    let extent = u32::from(extent);
    let mut size = vec![0, 0];
    for word in [extent, extent, 0, 0, extent, extent, 0, 0] {
        size.extend(u32::to_be_bytes(word));
    }
    size.extend([0, 3, 7, 1, 1, 7, 1, 1, 7, 1, 1]);
    // One layer; five times halved; blocks of 64 by 64; reversible.
    let style = [0, 0, 0, 1, 0, 5, 4, 4, 0, 1];
    let steps: Vec<u8> = std::iter::once(0x40).chain([0x48; 16]).collect();
    let mut bytes = vec![0xff, 0x4f];
    for (marker, body) in [(0x51, &size[..]), (0x52, &style), (0x5c, &steps)] {
        bytes.extend([0xff, marker]);
        bytes.extend(u16::try_from(body.len() + 2).unwrap_or(0).to_be_bytes());
        bytes.extend(body);
    }
    // A part of a tile, as long as its head of 12 bytes and the mark of its data.
    bytes.extend([0xff, 0x90, 0, 10, 0, 0, 0, 0, 0, 14, 0, 1, 0xff, 0x93]);
    bytes.extend([0xff, 0xd9]);
    bytes
}
