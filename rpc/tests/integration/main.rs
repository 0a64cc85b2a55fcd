//! Integration tests of `rpc`: one executable, one module for each topic.

mod authorizer;
mod documents;
mod follow;
mod follow_cursor;
mod hostile;
mod http;
mod local_socket;
mod memory;
mod served;
mod smuggled;
mod witness;
