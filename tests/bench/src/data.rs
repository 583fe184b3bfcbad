//! Makes hints that are the same in every run: 100 components, 40 scopes and 30 tags. Each hint has two tags, and some
//! tags are much more common than others. A third of the hints has a reason. A value has about 59 bytes.

use std::sync::Arc;

use nudge::{
    BumpHint, Config, Context, ContextSpec, HintMeta, HintValue, Limit, ManualClock, Nudge, Os, ScopeSpec, SetHint,
};

pub const COMPONENTS: usize = 100;
pub const SCOPES: usize = 40;
pub const TAGS: usize = 30;

/// The clock of a filled store begins at 2026-01-01.
const EPOCH_MS: i64 = 1_767_225_600_000;
/// The time between the first and the last set of a store, in milliseconds.
const SPAN_MS: i64 = 30 * 24 * 3_600_000;

/// A small random generator (splitmix64) with a fixed seed, so that every run has the same data.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        // The remainder fits into a `usize`.
        usize::try_from(self.next() % limit as u64).unwrap_or_default()
    }

    /// Returns the numbers below `count` in random order.
    pub fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..count).collect();
        (1..count).rev().for_each(|index| order.swap(index, self.below(index + 1)));
        order
    }
}

/// Returns a configuration without limits and without the secret guard. Their costs are measured separately.
pub fn config() -> Config {
    Config {
        max_components: usize::MAX,
        max_hints_per_component: usize::MAX,
        max_hints: usize::MAX,
        max_bytes: usize::MAX,
        secret_guard: false,
        ..Config::default()
    }
}

/// Returns the context in which all rows call.
pub fn place() -> ContextSpec {
    Context::builder()
        .cwd("/work/mono/svc-12/src")
        .repo("https://github.com/acme/mono.git")
        .branch("feature/login")
        .os(Os::Linux)
        .env("CI", "1")
}

/// Returns scope number `index` of the 40 scopes. About half of the scopes fit [`place`].
pub fn scope(index: usize) -> ScopeSpec {
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    let folder = |glob: String| ScopeSpec { cwd_glob: vec![glob], ..ScopeSpec::default() };
    match index {
        0 => ScopeSpec::default(),
        1 => ScopeSpec { os: vec![Os::Linux], ..ScopeSpec::default() },
        2 => ScopeSpec { os: vec![Os::Darwin, Os::Windows], ..ScopeSpec::default() },
        3 => ScopeSpec { branch: list(&["main"]), os: vec![Os::Linux], ..ScopeSpec::default() },
        4 => ScopeSpec { branch: list(&["feature/*"]), ..ScopeSpec::default() },
        5 => ScopeSpec { branch: list(&["release/*", "hotfix/*"]), ..ScopeSpec::default() },
        6 => ScopeSpec { repo: list(&["acme/mono"]), ..ScopeSpec::default() },
        7 => ScopeSpec { repo: list(&["acme/other"]), ..ScopeSpec::default() },
        8 => ScopeSpec { env_required: list(&["CI"]), ..ScopeSpec::default() },
        9 => ScopeSpec { env_required: list(&["STAGING"]), ..ScopeSpec::default() },
        _ => match index % 6 {
            0 => folder(format!("/work/mono/svc-{index}/**")),
            1 => folder(format!("/work/{{mono,web-{index}}}/**")),
            2 => folder(format!("**/svc-{index}*/**")),
            3 => ScopeSpec { branch: list(&["feature/**"]), ..folder(format!("**/svc-[0-9]*/{{src,lib-{index}}}")) },
            4 => ScopeSpec { os: vec![Os::Linux], ..folder(format!("**/mono/**/s{{vc-12,vc-{index}}}/**")) },
            _ => ScopeSpec { branch: list(&["main", "dev"]), ..folder(format!("/home/me/project-{index}/**")) },
        },
    }
}

/// Returns the scopes for the variants of a key. Three of four fit [`place`].
pub fn variants(count: usize) -> Vec<ScopeSpec> {
    let cwd = |glob: &str| ScopeSpec { cwd_glob: vec![glob.into()], ..ScopeSpec::default() };
    let all = [
        ScopeSpec { branch: vec!["feature/*".into()], ..cwd("/work/mono/**") },
        ScopeSpec { os: vec![Os::Linux], ..cwd("**/svc-*/**") },
        ScopeSpec { os: vec![Os::Linux], ..ScopeSpec::default() },
        ScopeSpec { branch: vec!["main".into()], os: vec![Os::Darwin], ..ScopeSpec::default() },
    ];
    all.into_iter().take(count).collect()
}

/// A generated hint.
#[derive(Clone)]
pub struct Seed {
    pub set: SetHint,
    pub scope: usize,
    pub uses: u64,
    pub updated_at: i64,
}

/// Makes `count` hints in the order of their sets. Each has its own key.
pub fn seeds(count: usize) -> Vec<Seed> {
    let mut random = Random(1);
    (0..count).map(|index| seed(index, count, &mut random)).collect()
}

fn seed(index: usize, count: usize, random: &mut Random) -> Seed {
    const VERBS: [&str; 6] = ["build", "run", "test", "deploy", "lint", "logs"];
    let component = format!("service-{:02}", index % COMPONENTS);
    let verb = VERBS[random.below(VERBS.len())];
    let text = format!("docker compose {verb} --service {component} --profile dev-{:06x}", random.below(1 << 24));
    let value = if random.below(2) == 0 { HintValue::from(text) } else { HintValue::command(&text) };
    // Takes the smaller of two random numbers, so that low tags are common: tag 0 is on every 8th hint, tag 29 on every
    // 450th.
    let mut tag = || format!("tag-{:02}", random.below(TAGS).min(random.below(TAGS)));
    let mut tags = vec![tag(), tag()];
    if tags[0] == tags[1] {
        tags[1] = format!("tag-{}", TAGS - 1);
    }
    let scope_at = random.below(SCOPES);
    let meta = HintMeta {
        reason: index
            .is_multiple_of(3)
            .then(|| format!("`{verb}` alone misses the profile; found by trial {}", index % 17)),
        tags,
        priority: index.is_multiple_of(2).then(|| u8::try_from(1 + random.below(10)).unwrap_or(5)),
        confidence: index.is_multiple_of(4).then(|| random.below(101) as f64 / 100.0),
        scope: scope(scope_at),
        ..HintMeta::default()
    };
    let uses = if random.below(3) == 0 { 1 + random.next() % 9 } else { 0 };
    let updated_at = EPOCH_MS + SPAN_MS * i64::try_from(index).unwrap_or_default() / i64::try_from(count).unwrap_or(1);
    Seed {
        set: SetHint { meta, ..SetHint::new(component, format!("{verb}-{index}"), value) },
        scope: scope_at,
        uses,
        updated_at,
    }
}

/// Makes a store with these hints. Each is set and used at its time.
pub fn store(seeds: &[Seed]) -> Nudge {
    let clock = Arc::new(ManualClock::new(EPOCH_MS));
    let nudge = Nudge::with_clock(config(), clock.clone());
    let mut now = EPOCH_MS;
    for seed in seeds {
        clock.advance_by(seed.updated_at - now);
        now = seed.updated_at;
        let (component, key) = (seed.set.component.clone(), seed.set.key.clone());
        let variant = nudge.set(seed.set.clone()).expect("a seed is valid").hint.variant().to_owned();
        if seed.uses > 0 {
            let delta = usize::try_from(seed.uses).ok().and_then(Limit::new).expect("a seed has few uses");
            let bump = BumpHint { component, key, delta, variant: Some(variant), ..BumpHint::default() };
            nudge.bump(bump).expect("it was just set");
        }
    }
    nudge
}
