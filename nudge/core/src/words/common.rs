//! Lists words that say little in a sentence, and common short forms of words.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

/// How much a word contributes to the meaning of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WordWeight {
    /// A function word, which contributes nothing.
    Nothing,
    /// A word that fits every program, such as `file`; it contributes little.
    Little,
    /// A word that names a certain thing.
    Full,
}

/// Returns the weight of a folded word.
pub(super) fn weigh_word(folded: &str) -> WordWeight {
    static COMMON: LazyLock<HashMap<&str, WordWeight, RandomState>> = LazyLock::new(|| {
        let weigh_words = |words: &'static str, weight| words.split(' ').map(move |word| (word, weight));
        weigh_words(NOTHING, WordWeight::Nothing).chain(weigh_words(LITTLE, WordWeight::Little)).collect()
    });
    COMMON.get(folded).copied().unwrap_or(WordWeight::Full)
}

/// Returns true for a folded function word of English that is not also a word of German, French or Spanish.
pub(super) fn is_english(folded: &str) -> bool {
    ENGLISH.split(' ').any(|word| word == folded)
}

/// Returns the long form of a short form. Other words are returned unchanged.
pub(super) fn in_full(folded: &str) -> &str {
    static FORMS: LazyLock<HashMap<&str, &str, RandomState>> =
        LazyLock::new(|| SHORT.split(' ').filter_map(|pair| pair.split_once('=')).collect());
    FORMS.get(folded).copied().unwrap_or(folded)
}

/// Short forms from programming, with the usual plurals. Each short form has only one meaning.
const SHORT: &str = "\
admin=administration auth=authentication authn=authentication bench=benchmark benches=benchmark cert=certificate \
certs=certificate cfg=configuration config=configuration configs=configuration configure=configuration \
configured=configuration creds=credentials db=database dbs=database dep=dependency deps=dependency dir=directory \
dirs=directory doc=documentation docs=documentation env=environment envs=environment img=image k8s=kubernetes \
lib=library libs=library param=parameter params=parameter perf=performance pkg=package pkgs=package \
postgresql=postgres prod=production proto=protobuf protos=protobuf py=python repo=repository repos=repository";

/// Words that fit every program.
const LITTLE: &str = "\
answer app branch check class code command data directory error errors example fail failed failing fails file files find \
fix fixed folder folders function functions job line lines list local main method name number object open page \
paragraph project question read remove run running runs script sentence server service services snippet start \
started starting starts stop string system task text type update user users value variable version word words write";

/// Function words of English, and the most frequent words of German, French and Spanish.
const NOTHING: &str = "\
aber about actually add after afterwards again agree ahead al all alle alles almost already als also always am an \
and another any anybody anyone anything are around as ask at auch auf aus avec away back bad be because been before \
bei being best better between bien big bin bis bit bitte bon both bring brings but by ca call can cannot ce cela \
change changed changes come comes con could da danke dann das dass day de del dem den der des deux did die dies \
diese dieser do does doing donc done dont down du durch each ein eine einem einen einer either el elle else en end \
enough es esta este et etwas euch even ever every everything explain faire fait far favor few finally first for from \
fur get gets give go goes going good got gracias great gut habe haben had has hat have having he hello help her here \
hey hi hier him his hola how however ich idea if ihr il ils in instead into is isnt ist it its ja je jetzt just kann \
keep know la las last later le left les less let lets like little lo long look looks los lot lui ma mach machen made \
mais make makes making mal man many mas may maybe me mean merci mich might mine mir mit moi more most much muss must \
muy my nach need needs nein never new next nice nicht no noch not nothing nous now nun nur oder of off ok okay old \
on once one ones only or other others ou oui our out over own par part pas perhaps place please por porque possible \
pour pretty proceed puis put que qui quick quickly quite quoi rather ready really right said same say says see seem \
seems sehr sein ses set she should show shows si sich sie sin since sind small so some somebody something son sont \
soon sorry still su such sur sure take takes tell than thank thanks that the their them then there these they thing \
things think this those through time times to today together tomorrow too tous tout tried try tu two um una und \
under une uno uns until up us use used uses using var vers very viel vom von vor vous want wants warum was way we \
week weil weiter well wenn went wer were what when where whether which while who whole why wie wieder will wir wird \
with without wo wont work working works would wrong y yes yet you your zu zum zur";

const ENGLISH: &str = "\
and are be because but by can did does for from had has have he his how if is it its my not of our should that the their \
them then there these they this those to what when where which while who why with without you your";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_apart() {
        for list in [SHORT, LITTLE, NOTHING] {
            assert!(list.split(' ').is_sorted() && list.split(' ').all(|word| !word.is_empty()), "{list}");
        }
        assert!(LITTLE.split(' ').all(|word| weigh_word(word) == WordWeight::Little));
        assert!(SHORT.split(' ').all(|pair| pair.split_once('=').is_some_and(|(short, full)| in_full(short) == full)));
        assert!(ENGLISH.split(' ').all(|word| weigh_word(word) == WordWeight::Nothing));
        assert_eq!((weigh_word("the"), weigh_word("migrations")), (WordWeight::Nothing, WordWeight::Full));
    }
}
