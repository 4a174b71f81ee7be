mod arithmetic;
mod keys;
mod spec;

use super::{KeyBuf, KeyEncoding};

fn encoded(key: &impl KeyEncoding) -> Vec<u8> {
    let mut buf = KeyBuf::new();
    key.encode_into(&mut buf);
    buf.as_bytes().to_vec()
}
