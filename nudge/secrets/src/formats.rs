//! Finds credentials whose shape alone identifies them. An Aho-Corasick automaton finds all prefixes of a table in one
//! pass. For a few formats it finds a text in the middle of the token. Every match reads a bounded number of bytes, so
//! the time of a scan is linear.

use super::classify::{count_distinct, digit_changes, is_uuid, is_word_byte, wordy_share};
use super::structure::is_web_token;
use FormatBody::{Alnum, Base64, Dotted, ExactUpper, Hex, Path, Special, Uuid, Word};
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::LazyLock;

/// The characters that the body of a format may have, which is the part after the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatBody {
    /// `0-9a-fA-F`
    Hex,
    /// `A-Z0-9`. The body has exactly the minimum length, and no letter or digit follows it.
    ExactUpper,
    /// `0-9a-zA-Z`
    Alnum,
    /// `0-9a-zA-Z_-`
    Word,
    /// `0-9a-zA-Z_-.=`
    Dotted,
    /// `0-9a-zA-Z+/=_-.%`
    Base64,
    /// A URL path: `0-9a-zA-Z/_-@`
    Path,
    /// A UUID with dashes.
    Uuid,
    /// [`is_special`] and [`is_marked`] define the body by the prefix or by the text inside the token.
    Special,
}

/// The formats, as `(rule, body, minimum length of the body, prefixes)`. The lengths are a little below the real ones,
/// so that a token without its last one or two characters still matches.
#[rustfmt::skip]
pub(super) const FORMATS: &[(&str, FormatBody, usize, &str)] = &[
    ("aws-access-key", ExactUpper, 16, "AKIA ASIA ABIA ACCA"),
    ("aws-access-key", ExactUpper, 17, "A3T"),
    ("aws-bedrock-key", Base64, 60, "ABSK"),
    ("aws-bedrock-key", Base64, 16, "bedrock-api-key-"),
    ("github-token", Word, 30, "ghp_ gho_ ghu_ ghs_ ghr_"),
    ("github-token", Word, 36, "github_pat_"),
    ("gitlab-token", Dotted, 18, "glpat- glrt-"),
    ("gitlab-token", Word, 18, "gldt- glcbt- glft- glsoat- glffct- glwt- glrtr- GR1348941"),
    ("gitlab-token", Word, 30, "glptt- glagent- gloas-"),
    ("gitlab-token", Word, 20, "glimt-"),
    ("gitlab-token", Alnum, 20, "_gitlab_session="),
    ("slack-token", Word, 20, "xoxb- xoxp- xoxe- xwfp-"),
    ("slack-token", Word, 10, "xoxa- xoxr- xoxs- xoxo- xoxc-"),
    ("slack-token", Base64, 16, "xoxd-"),
    ("slack-token", Dotted, 24, "xoxe."),
    ("slack-token", Word, 24, "xapp-"),
    ("slack-webhook", Path, 24, "hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack-gov.com/services/"),
    ("slack-webhook", Path, 20, "hooks.slack.com/triggers/"),
    ("stripe-key", Alnum, 10, "sk_live_ sk_prod_ rk_live_ rk_prod_"),
    ("stripe-key", Base64, 20, "whsec_"),
    ("stripe-key", Word, 16, "sk_sbox_"),
    ("stripe-key", Word, 20, "sk_org_"),
    ("openai-key", Word, 20, "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-"),
    ("openai-key", Alnum, 36, "sess-"),
    ("anthropic-key", Word, 30, "sk-ant-"),
    ("llm-key", Word, 30, "sk-or- tgp_v1_ lsv2_pt_ lsv2_sk_ wandb_v1_ sk-kimi-"),
    ("llm-key", Uuid, 36, "sk-lf-"),
    ("llm-key", Word, 16, "sk-helicone- unkey_"),
    ("llm-key", Alnum, 28, "sk- ls__"),
    ("llm-key", Alnum, 40, "sk_ gsk_ xai- dtn_ crsr_"),
    ("llm-key", Alnum, 32, "pplx-"),
    ("llm-key", Alnum, 30, "r8_ hf_ api_org_ rpa_ e2b_"),
    ("llm-key", Alnum, 20, "fw_ fpk_ esecret_"),
    ("llm-key", Word, 40, "nvapi- pcsk_ jina_ pa-"),
    ("llm-key", Alnum, 36, "csk-"),
    ("llm-key", Word, 24, "tvly-"),
    ("llm-key", Hex, 28, "fc-"),
    ("llm-key", Word, 20, "vck_ bb_live_ bb_test_ sk-lc-"),
    ("llm-key", Word, 10, "salad_cloud_"),
    ("llm-key", Hex, 60, "key_"),
    ("llm-key", Dotted, 30, "AQ.Ab"),
    ("llm-key", Path, 24, "bce-v3/ALTAK-"),
    ("llm-key", Word, 36, "llx-"),
    ("saas-token", Alnum, 30, "lin_api_ lin_oauth_ key- NF- apify_api_ AGE-PLUGIN-YUBIKEY-1"),
    ("saas-token", Alnum, 20, "lin_wh_ hcxlk_"),
    ("saas-token", Alnum, 36, "ntn_ dG9rO secret-"),
    ("saas-token", Alnum, 38, "secret_"),
    ("saas-token", Word, 32, "figd_ figo_ figu_ figoh_ CFPAT-"),
    ("saas-token", Dotted, 32, "figp_ fio-u-"),
    ("saas-token", Dotted, 36, "tfp_ VF.DM. VF.WS. VF."),
    ("saas-token", Word, 40, "PMAK- wrkaus- wrkeus- EAAA"),
    ("saas-token", Word, 20, "PMAT- md- NRSP-"),
    ("saas-token", Alnum, 50, "rdme_ AGE-SECRET-KEY-1"),
    ("saas-token", Word, 60, "sl.u. dnkey- tb.eyJ"),
    ("saas-token", Word, 90, "sl."),
    ("saas-token", Dotted, 50, "SG."),
    ("saas-token", Word, 50, "xkeysib- xsmtpsib-"),
    ("saas-token", Word, 28, "re_ scp-live-"),
    ("saas-token", Alnum, 40, "os_v2_app_ os_v2_org_ hcxik_ ramp_sec_"),
    ("saas-token", Word, 36, "sec-c- phx_ phs_ glsa_ sha256~"),
    ("saas-token", Base64, 40, "sntrys_"),
    ("saas-token", Hex, 40, "sntryu_ sntrya_ sntryi_ rootly_ s-s4t2ud- s-s4t2af-"),
    ("saas-token", Alnum, 24, "NRAK- aio_ vtwn_"),
    ("saas-token", Word, 24, "NRII- NRIQ-"),
    ("saas-token", Hex, 36, "NRRA-"),
    ("saas-token", Hex, 16, "NRJS-"),
    ("saas-token", Base64, 32, "glc_"),
    ("saas-token", Base64, 50, "eyJrIjoi AAAAAAAAAAAAAAAAAAAAA"),
    ("saas-token", Word, 30, "hcxmk_ pco_ nyk_ polar_oat_ polar_pat_ n8n_api_ A3-"),
    ("saas-token", Uuid, 36, "xaat- xapt- sdk- api- mob- rel- pat-na1- pat-na2- pat-eu1- rh-api-"),
    ("saas-token", Word, 16, "pdus+"),
    ("saas-token", Special, 18, "u+"),
    ("saas-token", Alnum, 18, "ser. flb_live_"),
    ("saas-token", Alnum, 28, "p8e- BBFF- cal_live_ tly-"),
    ("saas-token", Alnum, 14, "sm_aat_ sm_pat_ sm_sat_"),
    ("saas-token", Word, 26, "retool_"),
    ("saas-token", Base64, 60, "ops_eyJ v4.local. v2.local. v3.local."),
    ("saas-token", Dotted, 60, "3MVG9 5AEP861 p.eyJ"),
    ("saas-token", Special, 60, "00D"),
    ("saas-token", Dotted, 40, "sk.eyJ tk.eyJ act."),
    ("saas-token", Alnum, 60, "IGQV IGAA EAAC EAAG EAAM EAA"),
    ("saas-token", Dotted, 20, "WPL_AP1. WPL_AP0."),
    ("saas-token", Hex, 30, "oauth2v2_"),
    ("saas-token", Hex, 60, "SEC"),
    ("saas-token", Base64, 80, "v4.public."),
    ("google-key", Word, 30, "AIza"),
    ("google-key", Word, 20, "GOCSPX-"),
    ("google-key", Dotted, 20, "ya29."),
    ("google-key", Word, 24, "1//0 1//1"),
    ("google-key", Alnum, 40, "GOOG1E"),
    ("npm-token", Alnum, 30, "npm_"),
    ("pypi-token", Word, 40, "pypi-AgE pypi-AgN"),
    ("package-token", Hex, 40, "rubygems_"),
    ("package-token", Alnum, 32, "cio"),
    ("package-token", Word, 20, "dckr_pat_ dckr_oat_"),
    ("package-token", Alnum, 40, "oy2 CLOJARS_"),
    ("package-token", Alnum, 30, "ddp_ ddo_ ddw_ jsrp_"),
    ("package-token", Alnum, 50, "AKCp"),
    ("package-token", Alnum, 36, "cmVmdGtu"),
    ("package-token", Alnum, 56, "cmVmd"),
    ("package-token", Alnum, 24, "hexpm_"),
    ("cloud-token", Hex, 40, "dop_v1_ doo_v1_ dor_v1_"),
    ("cloud-token", Word, 30, "HRKU- sbp_ mdb_sa_sk_ ory_at_"),
    ("cloud-token", Word, 36, "fo1_"),
    ("cloud-token", Base64, 60, "fm1a_ fm1r_ fm2_"),
    ("cloud-token", Base64, 40, "essu_"),
    ("cloud-token", Word, 40, "tk-us-"),
    ("cloud-token", Word, 20, "vcp_ vci_ vca_ vcr_ sb_secret_ ory_pat_ ory_st_"),
    ("cloud-token", Word, 24, "vercel_ akab- tskey- zpka_"),
    ("cloud-token", Alnum, 30, "nfp_ nfc_ nfb_ nfo_ nfu_ AKID"),
    ("cloud-token", Alnum, 20, "rnd_ AKLT"),
    ("cloud-token", Alnum, 36, "cfut_ cfat_ cfk_ napi_"),
    ("cloud-token", Word, 100, "v1.0-"),
    ("cloud-token", Dotted, 28, "pscale_tkn_ pscale_oauth_ pscale_pw_"),
    ("cloud-token", Hex, 30, "dapi dkea dose dsapi"),
    ("cloud-token", Alnum, 16, "LTAI"),
    ("cloud-token", Word, 34, "YCA YCM YCN YCP AQVN"),
    ("cloud-token", Dotted, 60, "t1."),
    ("cloud-token", Word, 40, "y0_ ocp_ hcaik_"),
    ("cloud-token", Word, 16, "AVNS_"),
    ("cloud-token", ExactUpper, 17, "SCW"),
    ("cloud-token", Hex, 24, "EXO"),
    ("cloud-token", ExactUpper, 24, "EXO"),
    ("cloud-token", Word, 50, "SWMTKN-"),
    ("cloud-token", Uuid, 36, "RGAPI- amzn.mws."),
    ("cloud-token", Alnum, 26, "da2-"),
    ("vault-token", Dotted, 20, "hvs."),
    ("vault-token", Dotted, 40, "hvb. hvr."),
    ("vault-token", Special, 24, "s."),
    ("vault-token", Word, 60, "b."),
    ("doppler-token", Dotted, 30, "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit."),
    ("ci-token", Word, 30, "CCIPAT_ CCIPRJ_ bkaj_ bkct_ bkat_ bkrt_ dbtc_ dbtu_ shltm_ codecov_"),
    ("ci-token", Alnum, 30, "bkua_ pnu_ pnb_"),
    ("ci-token", Alnum, 32, "sqp_ squ_ sqa_"),
    ("ci-token", Dotted, 40, "snyk_uat. snyk_sat. dt0c01. dt0s01. dt0s02. dt0s03. dt0s08. dt0s16. perm-"),
    ("ci-token", Hex, 36, "pul-"),
    ("ci-token", Alnum, 28, "ico-"),
    ("ci-token", Dotted, 56, "pat. sat."),
    ("ci-token", ExactUpper, 25, "API-"),
    ("ci-token", ExactUpper, 26, "API-"),
    ("ci-token", ExactUpper, 27, "API-"),
    ("ci-token", Word, 36, "sgp_"),
    ("ci-token", Hex, 40, "slk_"),
    ("ci-token", Word, 16, "tr_dev_ tr_prod_"),
    ("ci-token", Hex, 30, "signkey-prod- signkey-test-"),
    ("ci-token", Dotted, 30, "perm:"),
    ("ci-token", Word, 12, "endr+"),
    ("ci-token", Word, 24, "depot_project_ depot_org_ depot_user_ tss_"),
    ("ci-token", Uuid, 36, "pat-"),
    ("atlassian-token", Base64, 40, "ATATT3 ATCTT3 ATSTT ATOA"),
    ("atlassian-token", Alnum, 24, "ATBB"),
    ("atlassian-token", Base64, 36, "BBDC-"),
    ("atlassian-token", Alnum, 40, "ATTA"),
    ("payment-key", Alnum, 28, "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_ shpcp_ shprt_ shpit_ shpct_"),
    ("payment-key", Hex, 60, "atkn_"),
    ("payment-key", Hex, 28, "prtapi_"),
    ("payment-key", Word, 20, "sq0atp- persona_production_ persona_sandbox_"),
    ("payment-key", Word, 36, "sq0csp-"),
    ("payment-key", Alnum, 40, "sqco_"),
    ("payment-key", Path, 20, "access_token$production$ access_token$sandbox$ secret-token:"),
    ("payment-key", Alnum, 12, "rzp_live_ rzp_test_"),
    ("payment-key", Word, 14, "FLWSECK"),
    ("payment-key", Uuid, 36, "access-sandbox- access-development- access-production-"),
    ("payment-key", Alnum, 50, "EZAK EZTK nsec1"),
    ("payment-key", Hex, 36, "shippo_live_ shippo_test_"),
    ("payment-key", Dotted, 36, "duffel_live_ duffel_test_"),
    ("payment-key", Word, 40, "pdl_live_ pdl_sdbx_ pdl_ntfset_"),
    ("payment-key", Word, 28, "xnd_production_ xnd_development_"),
    ("payment-key", Word, 30, "bxt_"),
    ("payment-key", Alnum, 24, "ak_live_ ak_test_"),
    ("payment-key", Base64, 40, "$aact_"),
    ("payment-key", Dotted, 24, "api_live. api_sandbox."),
    ("payment-key", Alnum, 36, "4b1d"),
    ("payment-key", Alnum, 90, "xprv tprv zprv yprv"),
    ("social-token", Alnum, 26, "oauth:"),
    ("webhook-url", Path, 60, "discord.com/api/webhooks/ discordapp.com/api/webhooks/ webhook.office.com/webhookb2/ \
        outlook.office.com/webhook/ media.guilded.gg/webhooks/ hooks.airtable.com/"),
    ("webhook-url", Path, 12, "hooks.zapier.com/hooks/catch/"),
    ("webhook-url", Alnum, 24, "hook.eu1.make.com/ hook.eu2.make.com/ hook.us1.make.com/ hook.integromat.com/"),
    ("webhook-url", Path, 60, "tines.com/webhook/"),
    ("webhook-url", Path, 16, "maker.ifttt.com/use/"),
    ("webhook-url", Path, 30, "open.feishu.cn/open-apis/bot/v2/hook/ open.larksuite.com/open-apis/bot/v2/hook/ \
        qyapi.weixin.qq.com/cgi-bin/webhook/send?key="),
    ("webhook-url", Uuid, 36, "hc-ping.com/"),
    ("webhook-url", Alnum, 20, "betteruptime.com/api/v1/heartbeat/ uptime.betterstack.com/api/v1/heartbeat/"),
    ("webhook-url", Alnum, 16, "events.hookdeck.com/e/"),
    ("webhook-url", Path, 28, "integrations.pagerduty.com/integration/ events.pagerduty.com/integration/"),
    ("webhook-url", Path, 40, "alert.victorops.com/integrations/generic/"),
    ("jwt", Special, 0, ".eyJ"),
    ("marked-format", Special, 30, "Q~"),
    ("marked-format", Special, 40, ".atlasv1."),
    ("marked-format", Special, 33, ":A"),
    ("marked-format", Special, 29, "_mmk"),
    ("marked-format", Special, 26, "FFFFNRAL |"),
    ("marked-format", Special, 36, ":fx"),
    ("marked-format", Special, 30, ".acc_ .acc-"),
    ("webhook-url", Special, 26, "/hooks/"),
    ("marked-format", Special, 16, "T3BlbkFJ"),
    ("marked-format", Special, 20, "_secret_"),
    ("okta-token", Special, 40, "00"),
    ("saas-token", Special, 28, "pk_"),
    ("saas-token", Special, 32, "SK -us"),
    ("secret-assignment", Special, 24, "django-insecure-"),
    ("payment-key", Word, 36, "live_"),
];

struct FormatTable {
    automaton: Option<AhoCorasick>,
    /// For each pattern its `(rule, body, minimum length of the body)`.
    entries: Vec<(&'static str, FormatBody, usize)>,
}

static TABLE: LazyLock<FormatTable> = LazyLock::new(|| {
    let mut prefixes = Vec::new();
    let mut entries = Vec::new();
    for &(rule, body, shortest, list) in FORMATS {
        for prefix in list.split_ascii_whitespace() {
            prefixes.push(prefix);
            entries.push((rule, body, shortest));
        }
    }
    // Building fails only with billions of patterns. The tests run every pattern.
    let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&prefixes).ok();
    FormatTable { automaton, entries }
});

/// Largest number of bytes that are read of a body. A longer body is judged by its beginning.
const BODY_LIMIT: usize = 128;

/// Length of the shortest format, in bytes.
pub(super) const SHORTEST: usize = 16;

/// Returns the rule of the first format in `text`. The text must be a single word, because no format contains a blank.
pub(super) fn find_format(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let table = &*TABLE;
    let automaton = table.automaton.as_ref()?;
    automaton.find_overlapping_iter(bytes).find_map(|hit| {
        let (rule, body, shortest) = table.entries[hit.pattern().as_usize()];
        let found = if body == Special {
            is_special(bytes, hit.start(), hit.end(), shortest)
        } else {
            starts_token(bytes, hit.start()) && body_matches(bytes, hit.end(), body, shortest)
        };
        found.then_some(rule)
    })
}

/// Returns true when a token may begin at `start`. The byte before it must not be a letter or a digit, unless it is the
/// letter of an escape such as `\n` or the end of one such as `%3D`.
pub(super) fn starts_token(bytes: &[u8], start: usize) -> bool {
    match start.checked_sub(1).map(|i| bytes[i]) {
        None => true,
        Some(b) if !b.is_ascii_alphanumeric() => true,
        Some(b'n' | b'r' | b't') => start >= 2 && bytes[start - 2] == b'\\',
        // A percent-encoded delimiter may come before the token, as in `%3Dtoken`.
        Some(b) => start >= 3 && bytes[start - 3] == b'%' && b.is_ascii_hexdigit() && bytes[start - 2].is_ascii_digit(),
    }
}

fn body_matches(bytes: &[u8], end: usize, body: FormatBody, shortest: usize) -> bool {
    let rest = &bytes[end..bytes.len().min(end + BODY_LIMIT.min(shortest + 16))];
    let length = rest.iter().take_while(|b| is_in_body(body, **b)).count();
    match body {
        Uuid => rest.len() >= 36 && is_uuid(&rest[..36]) && count_distinct(&rest[..36], 6) > 5,
        ExactUpper => {
            length == shortest
                && !rest.get(length).is_some_and(u8::is_ascii_alphanumeric)
                && count_distinct(&rest[..length], 4) > 3
        }
        _ => length >= shortest && looks_issued(&rest[..length]),
    }
}

fn is_in_body(body: FormatBody, b: u8) -> bool {
    CLASSES[usize::from(b)] & class_bit(body) != 0
}

/// Returns the bit that stands for this body's alphabet in [`CLASSES`].
const fn class_bit(body: FormatBody) -> u8 {
    match body {
        Hex => 1,
        ExactUpper => 2,
        Alnum => 4,
        Word | Special => 8,
        Dotted => 16,
        Base64 => 32,
        Path => 64,
        Uuid => 128,
    }
}

/// For each byte, the alphabets that contain it, as bits.
const CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut b: u8 = 0;
    while b < 128 {
        let word = is_word_byte(&b) || b == b'-';
        let dotted = word || matches!(b, b'.' | b'=');
        let sets = [
            b.is_ascii_hexdigit(),
            b.is_ascii_uppercase() || b.is_ascii_digit(),
            b.is_ascii_alphanumeric(),
            word,
            dotted,
            dotted || matches!(b, b'+' | b'/' | b'%'),
            word || matches!(b, b'/' | b'@' | b'+' | b'.'),
            b.is_ascii_hexdigit() || b == b'-',
        ];
        let mut bit = 0;
        while bit < sets.len() {
            if sets[bit] {
                table[b as usize] |= 1 << bit;
            }
            bit += 1;
        }
        b += 1;
    }
    table
};

/// Returns true when a machine has probably generated the body. It has many different bytes, no words and no
/// placeholder.
fn looks_issued(body: &[u8]) -> bool {
    if count_distinct(body, 7) < 7 || has_repeat(body, 8) {
        return false;
    }
    let share = wordy_share(body);
    share < 58 || (share < 82 && digit_changes(body) >= 3 && body.iter().filter(|b| b.is_ascii_digit()).count() >= 3)
}

/// Returns true when a body of small letters and digits looks random.
fn is_drawn_small(body: &[u8]) -> bool {
    body.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && body.iter().filter(|b| b.is_ascii_digit()).count() >= 3
        && looks_issued(body)
}

/// Returns true when a byte occurs `times` times in a row (`xxxxxxxx`, `00000000`). The letter `A` does not count,
/// because many formats use it as padding.
fn has_repeat(body: &[u8], times: usize) -> bool {
    let mut run = 1;
    body.windows(2).any(|w| {
        run = if w[0] == w[1] && w[0] != b'A' { run + 1 } else { 1 };
        run >= times
    })
}

/// Returns how many bytes just before `end` belong to the alphabet `body`, at most `limit`.
fn run_before(bytes: &[u8], end: usize, body: FormatBody, limit: usize) -> usize {
    bytes[end.saturating_sub(limit)..end].iter().rev().take_while(|b| is_in_body(body, **b)).count()
}

fn run_after(bytes: &[u8], start: usize, body: FormatBody, limit: usize) -> usize {
    bytes[start..bytes.len().min(start + limit)].iter().take_while(|b| is_in_body(body, **b)).count()
}

/// Returns how many digits are just before `end`, at most `limit`.
fn digits_before(bytes: &[u8], end: usize, limit: usize) -> usize {
    bytes[end.saturating_sub(limit)..end].iter().rev().take_while(|b| b.is_ascii_digit()).count()
}

/// Judges a format whose prefix alone is not enough. `start..end` is the prefix.
fn is_special(bytes: &[u8], start: usize, end: usize, shortest: usize) -> bool {
    let after = |body| run_after(bytes, end, body, 64);
    let issued = |length| length >= shortest && looks_issued(&bytes[end..end + length]);
    match &bytes[start..end] {
        // Vault before 1.10: `s.` and exactly 24 letters and digits.
        b"s." => starts_token(bytes, start) && after(Alnum) == 24 && after(Dotted) == 24 && issued(24),
        // ClickUp: `pk_`, the number of a user, `_`, and 32 capitals and digits.
        b"pk_" => {
            let number = bytes[end..bytes.len().min(end + 12)].iter().take_while(|b| b.is_ascii_digit()).count();
            let body = end + number + 1;
            number >= 5 && bytes.get(end + number) == Some(&b'_') && run_after(bytes, body, Alnum, 40) >= shortest
        }
        b"django-insecure-" => {
            let rest = &bytes[end..bytes.len().min(end + 50)];
            let length = rest.iter().take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'')).count();
            length >= shortest && count_distinct(&rest[..length], 10) >= 10 && wordy_share(&rest[..length]) < 60
        }
        // Twilio: exactly 32 small letters and digits.
        b"SK" => starts_token(bytes, start) && after(Word) == shortest && is_drawn_small(&bytes[end..end + shortest]),
        // Mattermost: exactly 26 letters and digits.
        b"/hooks/" => after(Alnum) == shortest && issued(shortest),
        // PagerDuty: exactly 18 characters that are not part of a longer base64 text.
        b"u+" => {
            let solid = |b: &u8| is_in_body(Base64, *b) && *b != b'=';
            after(Base64) == shortest && !start.checked_sub(1).is_some_and(|i| solid(&bytes[i])) && issued(after(Word))
        }
        // Okta: `00` and 40 characters.
        b"00" => {
            starts_token(bytes, start)
                && (start == 0 || !matches!(bytes[start - 1], b'-' | b'_'))
                && matches!(after(Word), 40..=42)
                && issued(after(Word))
        }
        // Salesforce session: the organisation's id, `!`, and 80 or more characters.
        b"00D" => {
            let id = run_after(bytes, end, Alnum, 20);
            let body = end + id + 1;
            matches!(id, 12 | 15)
                && bytes.get(end + id) == Some(&b'!')
                && run_after(bytes, body, Dotted, 100) >= shortest
        }
        _ => is_marked(bytes, start, end, shortest),
    }
}

/// Judges a format by a text in the middle of the token. `start..end` is that text.
fn is_marked(bytes: &[u8], start: usize, end: usize, shortest: usize) -> bool {
    let before = |body| run_before(bytes, start, body, 40);
    let drawn = |length| length >= shortest && looks_issued(&bytes[end..end + length]);
    let issued = |body| drawn(run_after(bytes, end, body, 100));
    match &bytes[start..end] {
        b".eyJ" => is_web_token(bytes, start),
        // Azure AD: three characters, a digit, `Q~`, and 31 to 34 characters, which may include further tildes.
        b"Q~" => {
            let body = bytes[end..].iter().take(100).take_while(|b| **b == b'~' || is_in_body(Dotted, **b));
            start >= 4 && bytes[start - 1].is_ascii_digit() && drawn(body.count())
        }
        b".atlasv1." => before(Alnum) >= 12 && issued(Dotted),
        // Telegram: the number of a bot, `:A`, and 34 characters.
        b":A" => {
            let length = run_after(bytes, end, Word, 64);
            digits_before(bytes, start, 16) >= 7
                && length >= shortest - 1
                && looks_issued(&bytes[end..end + shortest - 1])
        }
        // Mailchimp: 32 small letters and digits, `-us`, and the number of a data centre.
        b"-us" => {
            let length = before(Word);
            matches!(run_after(bytes, end, Word, 4), 1..=2)
                && bytes[end].is_ascii_digit()
                && length == shortest
                && is_drawn_small(&bytes[start - length..start])
        }
        b"_mmk" => before(Alnum) >= shortest - 2,
        b"FFFFNRAL" => before(Hex) >= shortest - 2,
        b":fx" => {
            start >= 36 && is_uuid(&bytes[start - 36..start]) && !bytes.get(end).is_some_and(u8::is_ascii_alphanumeric)
        }
        b"T3BlbkFJ" => before(Word) >= shortest && issued(Word),
        b"_secret_" => before(Alnum) >= 14 && looks_issued(&bytes[start - before(Alnum)..start]) && issued(Alnum),
        // Facebook app token: 15 or 16 digits, `|`, and 27 characters. Laravel token: the number of a row, `|`, and 40
        // or 48 characters.
        b"|" => {
            let digits = digits_before(bytes, start, 17);
            let solid = run_after(bytes, end, Alnum, 64);
            (matches!(digits, 15 | 16) || (digits > 0 && matches!(solid, 40 | 48))) && issued(Word)
        }
        // Authress: `sc_….….acc_….…`
        b".acc_" | b".acc-" => before(Dotted) >= 12 && issued(Base64),
        _ => false,
    }
}
