//! The names that `\p{...}` takes.

use crate::pattern::unicode::{BINARY, CATEGORIES};
use std::sync::LazyLock;

/// Scripts, each with its aliases (those of Unicode 14).
const SCRIPTS: &[&str] = &[
    "Adlam Adlm",
    "Ahom Ahom",
    "Anatolian_Hieroglyphs Hluw",
    "Arabic Arab",
    "Armenian Armn",
    "Avestan Avst",
    "Balinese Bali",
    "Bamum Bamu",
    "Bassa_Vah Bass",
    "Batak Batk",
    "Bengali Beng",
    "Bhaiksuki Bhks",
    "Bopomofo Bopo",
    "Brahmi Brah",
    "Braille Brai",
    "Buginese Bugi",
    "Buhid Buhd",
    "Canadian_Aboriginal Cans",
    "Carian Cari",
    "Caucasian_Albanian Aghb",
    "Chakma Cakm",
    "Cham Cham",
    "Cherokee Cher",
    "Chorasmian Chrs",
    "Common Zyyy",
    "Coptic Copt Qaac",
    "Cuneiform Xsux",
    "Cypriot Cprt",
    "Cypro_Minoan Cpmn",
    "Cyrillic Cyrl",
    "Deseret Dsrt",
    "Devanagari Deva",
    "Dives_Akuru Diak",
    "Dogra Dogr",
    "Duployan Dupl",
    "Egyptian_Hieroglyphs Egyp",
    "Elbasan Elba",
    "Elymaic Elym",
    "Ethiopic Ethi",
    "Georgian Geor",
    "Glagolitic Glag",
    "Gothic Goth",
    "Grantha Gran",
    "Greek Grek",
    "Gujarati Gujr",
    "Gunjala_Gondi Gong",
    "Gurmukhi Guru",
    "Han Hani",
    "Hangul Hang",
    "Hanifi_Rohingya Rohg",
    "Hanunoo Hano",
    "Hatran Hatr",
    "Hebrew Hebr",
    "Hiragana Hira",
    "Imperial_Aramaic Armi",
    "Inherited Zinh Qaai",
    "Inscriptional_Pahlavi Phli",
    "Inscriptional_Parthian Prti",
    "Javanese Java",
    "Kaithi Kthi",
    "Kannada Knda",
    "Katakana Kana",
    "Kayah_Li Kali",
    "Kharoshthi Khar",
    "Khitan_Small_Script Kits",
    "Khmer Khmr",
    "Khojki Khoj",
    "Khudawadi Sind",
    "Lao Laoo",
    "Latin Latn",
    "Lepcha Lepc",
    "Limbu Limb",
    "Linear_A Lina",
    "Linear_B Linb",
    "Lisu Lisu",
    "Lycian Lyci",
    "Lydian Lydi",
    "Mahajani Mahj",
    "Makasar Maka",
    "Malayalam Mlym",
    "Mandaic Mand",
    "Manichaean Mani",
    "Marchen Marc",
    "Masaram_Gondi Gonm",
    "Medefaidrin Medf",
    "Meetei_Mayek Mtei",
    "Mende_Kikakui Mend",
    "Meroitic_Cursive Merc",
    "Meroitic_Hieroglyphs Mero",
    "Miao Plrd",
    "Modi Modi",
    "Mongolian Mong",
    "Mro Mroo",
    "Multani Mult",
    "Myanmar Mymr",
    "Nabataean Nbat",
    "Nandinagari Nand",
    "New_Tai_Lue Talu",
    "Newa Newa",
    "Nko Nkoo",
    "Nushu Nshu",
    "Nyiakeng_Puachue_Hmong Hmnp",
    "Ogham Ogam",
    "Ol_Chiki Olck",
    "Old_Hungarian Hung",
    "Old_Italic Ital",
    "Old_North_Arabian Narb",
    "Old_Permic Perm",
    "Old_Persian Xpeo",
    "Old_Sogdian Sogo",
    "Old_South_Arabian Sarb",
    "Old_Turkic Orkh",
    "Old_Uyghur Ougr",
    "Oriya Orya",
    "Osage Osge",
    "Osmanya Osma",
    "Pahawh_Hmong Hmng",
    "Palmyrene Palm",
    "Pau_Cin_Hau Pauc",
    "Phags_Pa Phag",
    "Phoenician Phnx",
    "Psalter_Pahlavi Phlp",
    "Rejang Rjng",
    "Runic Runr",
    "Samaritan Samr",
    "Saurashtra Saur",
    "Sharada Shrd",
    "Shavian Shaw",
    "Siddham Sidd",
    "SignWriting Sgnw",
    "Sinhala Sinh",
    "Sogdian Sogd",
    "Sora_Sompeng Sora",
    "Soyombo Soyo",
    "Sundanese Sund",
    "Syloti_Nagri Sylo",
    "Syriac Syrc",
    "Tagalog Tglg",
    "Tagbanwa Tagb",
    "Tai_Le Tale",
    "Tai_Tham Lana",
    "Tai_Viet Tavt",
    "Takri Takr",
    "Tamil Taml",
    "Tangsa Tnsa",
    "Tangut Tang",
    "Telugu Telu",
    "Thaana Thaa",
    "Thai Thai",
    "Tibetan Tibt",
    "Tifinagh Tfng",
    "Tirhuta Tirh",
    "Toto Toto",
    "Ugaritic Ugar",
    "Vai Vaii",
    "Vithkuqi Vith",
    "Wancho Wcho",
    "Warang_Citi Wara",
    "Yezidi Yezi",
    "Yi Yiii",
    "Zanabazar_Square Zanb",
];

/// All that may stand between the braces, sorted.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let aliases = |list: &'static [&str]| list.iter().flat_map(|row| row.split(' '));
    let alone = aliases(CATEGORIES).chain(aliases(BINARY)).map(str::to_owned);
    let mut names: Vec<String> = alone.collect();
    for (properties, values) in
        [(["General_Category", "gc"], CATEGORIES), (["Script", "sc"], SCRIPTS), (["Script_Extensions", "scx"], SCRIPTS)]
    {
        for property in properties {
            names.extend(aliases(values).map(|value| format!("{property}={value}")));
        }
    }
    names.sort_unstable();
    names
});

/// Whether it may stand between the braces.
pub(super) fn is_name(text: &str) -> bool {
    NAMES.binary_search_by(|name| name.as_str().cmp(text)).is_ok()
}

/// Whether some name begins like this.
pub(super) fn is_start(text: &str) -> bool {
    let at = NAMES.partition_point(|name| name.as_str() < text);
    NAMES.get(at).is_some_and(|name| name.starts_with(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_a_table() {
        for script in SCRIPTS.iter().flat_map(|row| row.split(' ')) {
            let strict = crate::pattern::Options { strict: true, ..Default::default() };
            let pattern = crate::pattern::parse(&format!("\\p{{Script={script}}}"), &strict);
            assert!(pattern.is_ok(), "{script}");
        }
    }

    #[test]
    fn names_and_their_starts() {
        assert!(is_name("L") && is_name("gc=Lu") && is_name("scx=Grek") && is_name("White_Space"));
        assert!(!is_name("Greek") && !is_name("Script=greek") && !is_name(""));
        assert!(is_start("Scri") && is_start("") && is_start("sc=Greek") && !is_start("sc=Greekx"));
    }
}
