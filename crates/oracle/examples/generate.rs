//! Prints the random program of a seed: `generate SEED [SIZE]`

use tfrt_oracle::generate::{Options, generate};

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse().unwrap_or(0));
    let seed = numbers.next().unwrap_or(0);
    let mut options = Options::default();
    if let Some(size) = numbers.next().and_then(|size| usize::try_from(size).ok()) {
        options.size = size;
    }
    print!("{}", generate(seed, options));
}
