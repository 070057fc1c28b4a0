//! Stands in for the `tls` module in builds without it: a type without values.

use crate::listen::Io;
use regard_core::Result;
use std::io;

/// A certificate and its private key; a build without the feature `tls` has none.
#[derive(Clone, Debug)]
pub enum Tls {}

impl Tls {
    pub(crate) fn reload(&self, _: bool) -> Result<bool> {
        match *self {}
    }

    pub(crate) async fn accept(&self, _: tokio::net::TcpStream) -> io::Result<Box<dyn Io>> {
        match *self {}
    }
}
