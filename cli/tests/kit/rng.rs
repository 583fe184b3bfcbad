//! Makes random decisions that a seed can repeat.

/// A generator of the kind `SplitMix64`.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns `NUDGE_SEED`, or a seed from the clock. Prints the seed, so that a run can be repeated.
    pub fn seed(test: &str) -> u64 {
        let given = std::env::var("NUDGE_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = given.unwrap_or(u64::from(now.subsec_nanos()) ^ now.as_secs() << 30);
        println!("{test}: NUDGE_SEED={seed}");
        seed
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    pub fn millis(&mut self, from: u64, to: u64) -> std::time::Duration {
        std::time::Duration::from_millis(from + self.below(to - from))
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}
