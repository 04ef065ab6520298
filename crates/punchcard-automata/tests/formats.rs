//! The formats, by what they admit and what they do not.

mod walk;

use punchcard_automata::{Language, Languages, formats};
use walk::{Random, walk};

fn check(format: &str, valid: &[&str], invalid: &[&str]) {
    let mut l = Languages::new();
    let language = formats::language(format, &mut l).unwrap();
    for text in valid {
        assert!(l.matches(language, text), "{format} lacks {text:?}");
    }
    for text in invalid {
        assert!(!l.matches(language, text), "{format} has {text:?}");
    }
}

#[test]
fn date() {
    let mut l = Languages::new();
    let date = formats::language("date", &mut l).unwrap();
    for year in [0, 1, 4, 96, 100, 400, 1900, 1999, 2000, 2023, 2024, 2100, 9996, 9999] {
        let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        for month in 0..=13 {
            let days = match month {
                4 | 6 | 9 | 11 => 30,
                2 => 28 + u32::from(leap),
                1..=12 => 31,
                _ => 0,
            };
            for day in 0..=32 {
                let text = format!("{year:04}-{month:02}-{day:02}");
                assert_eq!(l.matches(date, &text), (1..=days).contains(&day), "{text}");
            }
        }
    }
}

#[test]
fn time() {
    check(
        "time",
        &["00:00:00Z", "23:59:59z", "12:30:45.5+14:00", "12:30:45-00:00", "12:30:45.000000000001Z"],
        &["24:00:00Z", "12:60:00Z", "12:30:60Z", "12:30:61Z", "12:30Z", "12:30:45", "12:30:45.Z", "12:30:45+24:00", ""],
    );
}

/// Each local minute of a day has one offset on each side that makes it the last minute in UTC.
#[test]
fn leap_seconds() {
    let mut l = Languages::new();
    let time = formats::language("time", &mut l).unwrap();
    for (hour, minute) in [(0, 0), (0, 59), (1, 29), (11, 59), (12, 0), (23, 58), (23, 59)] {
        for sign in ['+', '-'] {
            for offset in 0..1440 {
                let text = format!("{hour:02}:{minute:02}:60{sign}{:02}:{:02}", offset / 60, offset % 60);
                let utc: i32 = if sign == '+' { hour * 60 + minute - offset } else { hour * 60 + minute + offset };
                assert_eq!(l.matches(time, &text), utc.rem_euclid(1440) == 1439, "{text}");
            }
        }
    }
}

#[test]
fn date_time() {
    check(
        "date-time",
        &[
            "2024-02-29T08:30:06.283185Z",
            "2024-02-29t08:30:06z",
            "2016-12-31T23:59:60Z",
            "2016-12-31T15:59:60.5-08:00",
            "2017-01-01T05:29:60+05:30",
            "2024-02-29T23:59:60Z",
            "2024-03-01T00:59:60+01:00",
        ],
        &[
            "2023-02-29T08:30:06Z",
            "2024-02-29 08:30:06Z",
            "2024-02-29T08:30:06",
            // No leap second is inserted within a month.
            "2016-12-30T23:59:60Z",
            "2016-12-31T05:29:60+05:30",
            "2017-01-01T15:59:60-08:00",
            "2024-02-28T23:59:60Z",
        ],
    );
}

#[test]
fn duration() {
    check(
        "duration",
        &["P1Y2M3DT4H5M6S", "P1Y", "PT36H", "P2W", "PT0S", "P1Y2M", "P007D"],
        &["P", "PT", "P1YT", "P1Y2D", "PT1H2S", "P1W1D", "P1.5D", "p1d", "-P1D", "P1S", "1D"],
    );
}

#[test]
fn email() {
    let long = |n: usize| format!("{}@example.com", "a".repeat(n));
    // 64 characters, an at sign, and 189 or 190 more.
    let labels = |last: usize| format!("{}@{}.{}.{}", "a".repeat(64), "b".repeat(63), "c".repeat(63), "d".repeat(last));
    check(
        "email",
        &[
            "a@b",
            "o'hara+x/y@example.com",
            r#""a b\"c"@example.com"#,
            r#"""@example.com"#,
            "a@[192.0.2.1]",
            "a@[IPv6:2001:db8::1]",
            "a@[ipv6:::ffff:192.0.2.1]",
            "a@xn--bcher-kva.example",
            &long(64),
            &labels(61),
        ],
        &[
            "a",
            "@b",
            "a@",
            "a..b@c",
            ".a@b",
            "a@b.",
            "a@-b",
            "a@b_c",
            "a b@c",
            r#""a@b"#,
            r#""a"b"@c"#,
            "a@[300.0.2.1]",
            "a@[2001:db8::1]",
            "a@[x:y]",
            "ä@b",
            "a@xn--x",
            &long(65),
            &labels(62),
        ],
    );
}

#[test]
fn idn_email() {
    let octets = |n: usize| format!("{}@example.com", "ä".repeat(n));
    check(
        "idn-email",
        &["δοκιμή@παράδειγμα.gr", "a@b", r#""ä b"@c"#, "a@bu\u{308}cher.example", &octets(32)],
        &["δοκιμή", "δοκιμή@", "ä..b@c", "a@ä_b", "a@b。c", &octets(33)],
    );
}

#[test]
fn hostname() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
    check(
        "hostname",
        &[
            "a",
            "3com.com",
            "a-b.c-d",
            "a--b",
            "ab--cd",
            "xn-a",
            "xn--bcher-kva.example",
            "XN--BCHER-KVA",
            "xn--4dbrk0ce",
            &label,
            &longest,
        ],
        &[
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "-a",
            "a-",
            "a_b",
            "ä",
            "xn--",
            "xn--a",
            "xn--bcher-kvA0",
            // Quotation marks in the U-label, and nothing beyond ASCII in it.
            "xn--bcher-kva8445foa",
            "xn--bcher-",
            // A digit first in a name with a label from right to left.
            "0a.xn--4dbrk0ce",
            "xn--4dbrk0ce.0a",
            &"a".repeat(64),
            &format!("{longest}a"),
        ],
    );
}

#[test]
fn idn_hostname() {
    check(
        "idn-hostname",
        &[
            "straße.example",
            "bücher",
            "Example.COM",
            "例え。jp",
            "ישראל.il",
            "xn--bcher-kva",
            "l·l",
            "क्‍ष",
            "donaudampfschifffahrtsgesellschaftskapitän",
            "ประเทศไทย",
            "вот-это-длинное-имя",
        ],
        &[
            "Bücher",
            "bu\u{308}cher",
            "ª",
            "a·l",
            "ab--cd",
            "-ü",
            "ü-",
            "ü_",
            "b\u{200D}",
            "אa",
            "1א",
            "0a.א",
            "א.0a",
            "ü..a",
            "\u{301}a",
            &"ü".repeat(60),
        ],
    );
}

#[test]
fn ip_addresses() {
    check(
        "ipv4",
        &["0.0.0.0", "255.255.255.255", "1.20.200.249"],
        &["256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.4 ", "1.2.3.1000", ""],
    );
    check(
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "1:2:3:4:5:6:1.2.3.4",
        ],
        &[
            "",
            ":",
            ":::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8::",
            "1::2::3",
            "12345::",
            "::1.2.3",
            "1:2:3:4:5:6:7:1.2.3.4",
            "::1%0",
        ],
    );
}

#[test]
fn uris() {
    let both = [
        "urn:a:b",
        "http://a/b?c#d",
        "x+y-z.1:",
        "http://[::1]:80/",
        "http://[v1.a:b]/",
        "file:///a",
        "http://u:p@h:/",
    ];
    let neither =
        ["http://a b", "http://[::1", "http://a/%zz", "1x:a", "http://a:b", "a:[b]", "http://[::1]x", "a:#b#c", "\\a"];
    check("uri", &both, &neither);
    check("iri", &both, &neither);
    check(
        "uri-reference",
        &["", "a/b:c", "../a", "//h/p", "?q", "#f", "a:b"],
        &[":a", "1:b", "//a:b", "é", "\u{E000}"],
    );
    check(
        "iri-reference",
        &["é?\u{E000}", "//é.example/ü#ß", "a%C3%A9"],
        &["\u{E000}", "#\u{E000}", "é:b", "\u{FFFE}"],
    );
    check("uri", &[], &["", "a", "//h/p", "urn:é"]);
    check("iri", &["urn:é", "http://例え.jp/?\u{F0000}"], &["é", "http://\u{E000}/"]);
}

#[test]
fn uri_template() {
    check(
        "uri-template",
        &["", "/a/{b}", "{+a,b*}{?c:3,d.e}", "{%41_1}", "é'"],
        &["{", "}", "{}", "{a", "{=a}", "{a:0}", "{a:12345}", "{a*:3}", "{a b}", "a b", "%4", "{a.}", "{a,}"],
    );
}

#[test]
fn uuid() {
    check(
        "uuid",
        &["123e4567-e89b-12d3-a456-426614174000", "FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF"],
        &[
            "123e4567e89b12d3a456426614174000",
            "123e4567-e89b-12d3-a456-42661417400",
            "{123e4567-e89b-12d3-a456-426614174000}",
        ],
    );
}

#[test]
fn json_pointers() {
    check("json-pointer", &["", "/", "/a/~0~1/é", "//", "/a~1b/0"], &["a", "/~", "/~2", "#/a"]);
    check("relative-json-pointer", &["0", "10#", "1/a/~0", "0/"], &["", "01", "1a", "/a", "1#/a", "1-1/a", "-1"]);
}

#[test]
fn regex() {
    check(
        "regex",
        &[
            "",
            "a|b||",
            "^[A-Z]{2,3}-\\d+(?:\\.\\d*)?$",
            "(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)T(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)",
            "(?<scheme>a):(?<host>b)(?<port>c)(?<path>d)(?<query>e)(?<fragment>f)",
            "(?<q>[\\x22\\x27]).*\\k<q>",
            "\\k<a>(?<a>b)",
            "(?=a)(?!b)(?<=c)(?<!d)",
            "\\1(a)",
            "[]",
            "[^]",
            "[a-z-]",
            "[--0]",
            "[\\w-]",
            "[а-яё]",
            "[\\u0430-\\u044f]",
            "[\\uD83D\\uDE00-\\uD83D\\uDE4F]",
            "[\\uD800-\\uDBFF][\\uDC00-\\uDFFF]",
            "[😀-🙏]",
            "\\u{1F600}\\x41\\cA\\0",
            "\\p{L}\\P{Script=Greek}\\p{gc=Lu}",
            "a{2}b{2,}c{2,3}?d*?e+?f??",
            "[ -/:-@\\[-`{-~]",
            "\\-\\\"\\'\\@",
            "((((((((((((((((a))))))))))))))))",
        ],
        &[
            "(",
            ")",
            "a)",
            "[",
            "[a",
            "]",
            "{",
            "}",
            "*",
            "a**",
            "a{2,1}",
            "a{,2}",
            "a{2",
            "^*",
            "\\b+",
            "(?=a)*",
            "(?<=a)?",
            "[b-a]",
            "[\\d-z]",
            "[z-\\d]",
            "[\\uD83D\\uDE4F-\\uD83D\\uDE00]",
            "\\",
            "\\a",
            "\\_",
            "\\1",
            "(a)\\2",
            "\\k<a>",
            "\\k",
            "(?<a>b)(?<a>c)",
            "(?<1a>b)",
            "(?<>b)",
            "(?P<a>b)",
            "(?i)a",
            "\\u{110000}",
            "\\u12",
            "\\x4",
            "\\c1",
            "\\00",
            "\\p{Foo}",
            "\\p{}",
            "\\pL",
            // Only with the flag, and only without it.
            "\\p{L}\\-",
            "[😀]\\\"",
        ],
    );
}

#[test]
fn other_names_are_annotations() {
    let mut l = Languages::new();
    for name in ["color", "host-name", "int32", "password", "Date", ""] {
        assert_eq!(formats::language(name, &mut l), None, "{name}");
    }
}

/// Wherever a walk turns, it ends in a text of the format. Walks that begin in awkward places too.
#[test]
fn no_walk_meets_a_dead_end() {
    let mut random = Random::new(1);
    let prefixes = [
        ("hostname", "xn--"),
        ("hostname", "xn--a-b-c"),
        ("idn-hostname", "a.xn--"),
        ("idn-hostname", "ا."),
        ("idn-email", "a@xn--"),
        ("regex", "\\k<a>["),
        ("regex", "[\\uD83D\\uDE00-\\u"),
        ("regex", "\\-[\\uD7FF-\\u"),
        ("regex", "\\p{"),
        ("time", "05:29:6"),
    ];
    let starts = formats::names().map(|name| (name, "")).chain(prefixes);
    for (format, prefix) in starts {
        let mut l = Languages::new();
        let language = formats::language(format, &mut l).unwrap();
        for _ in 0..12 {
            let text = walk(&mut l, language, prefix, &mut random);
            assert!(l.matches(language, &text), "{format} {text:?}");
        }
    }
}

/// Another engine takes the patterns too, with the flag u or without.
#[test]
fn random_patterns_compile() {
    let mut random = Random::new(2);
    let mut l = Languages::new();
    let language = formats::language("regex", &mut l).unwrap();
    for _ in 0..300 {
        let pattern = walk(&mut l, language, "", &mut random);
        let compiled = ["u", ""].map(|flags| regress::Regex::with_flags(&pattern, flags));
        assert!(compiled.iter().any(Result::is_ok), "{pattern:?}: {compiled:?}");
    }
}

/// What a format may be combined with: its complement, a length, another format.
#[test]
fn combinations() {
    let mut l = Languages::new();
    let mut get = |name: &str| formats::language(name, &mut l).unwrap();
    let (ipv4, ipv6, host, uri, iri) = (get("ipv4"), get("ipv6"), get("hostname"), get("uri"), get("iri"));
    let empty = |l: &mut Languages, a: Language| l.is_empty_language(a).unwrap();
    let both = l.and([ipv4, ipv6]);
    assert!(empty(&mut l, both));
    let numbers = l.difference(ipv4, host);
    assert!(empty(&mut l, numbers), "every IPv4 address looks like a host name");
    let names = l.difference(host, ipv4);
    assert!(!empty(&mut l, names));
    let more = l.difference(uri, iri);
    assert!(empty(&mut l, more), "every URI is an IRI");
    let short = l.length(0, 6);
    let none = l.and([ipv4, short]);
    assert!(empty(&mut l, none), "an IPv4 address has seven characters at least");
}
