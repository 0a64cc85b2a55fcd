//! (module map follows)
