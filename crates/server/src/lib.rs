//! Listens. HTTP routes over the runtime.
