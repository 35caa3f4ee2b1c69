//! [`SimOptions`] and [`Policy`]: how a simulated driver behaves, and the order in which its commands run.

/// How a simulated driver behaves.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    /// Number of devices.
    pub n_devices: i32,
    /// Bytes of memory of each.
    pub len_bytes: usize,
    /// The order of commands.
    pub policy: Policy,
    /// The number that orders are drawn from.
    pub seed: u64,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions {
            n_devices: 1,
            len_bytes: 1 << 30,
            policy: Policy::Random,
            seed: 0,
        }
    }
}

/// The order in which commands run that nothing orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Each at its call.
    Eager,
    /// None before somebody waits or asks.
    Lazy,
    /// Some between any two calls, drawn by the seed.
    Random,
    /// As `Random`, those of the fullest stream first.
    LongestFirst,
    /// As `Random`, those of one stream only when no other has any.
    Starving(usize),
}

impl Policy {
    /// One of each kind.
    pub const ALL: [Policy; 5] = [
        Policy::Eager,
        Policy::Lazy,
        Policy::Random,
        Policy::LongestFirst,
        Policy::Starving(1),
    ];
}
