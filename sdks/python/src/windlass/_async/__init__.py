"""The async client; `windlass._sync` is generated from it."""
