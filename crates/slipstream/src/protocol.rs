//! The rules of the protocol, pure: facts in, decisions out.
