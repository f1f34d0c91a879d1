"""The commands of `rlt`, one module each."""
