//! Tokens of shards out of arbitrary bytes.
#![no_main]

/// SQLite, which comes with the runtime, has statics of one name in several functions: AddressSanitizer
/// takes them for one that is defined twice.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const std::ffi::c_char {
    c"detect_odr_violation=0".as_ptr()
}

// With the format and a step before them, so that the rest is reached.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gossip_runtime::fuzzing::shard_token(data);
    let sealed = [&[3][..], &[0; 8], data].concat();
    let _ = gossip_runtime::fuzzing::shard_token(&sealed);
});
