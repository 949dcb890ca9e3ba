//! Hands out. Who gets which job next; it may lose everything and nothing breaks.
