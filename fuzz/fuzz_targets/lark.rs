#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| punchcard_fuzzing::check("lark", data));
