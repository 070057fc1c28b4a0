//! The health check of a server on this machine.

use regard_core::{Error, Result};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// The timeout of each step of a health check.
const WAIT: Duration = Duration::from_secs(5);

/// Checks the health of the server at `address`, over TLS if a `certificate` is given. An error
/// describes what is wrong.
pub fn check_health(address: SocketAddr, certificate: Option<&Path>) -> Result<()> {
    let scheme = if certificate.is_some() { "https" } else { "http" };
    let failed = |what: String| Error::other(io::Error::other(format!("{scheme}://{address}/health{what}")));
    let status = connect(address).map_err(|error| failed(format!(": {error}"))).and_then(|stream| {
        let asked = match certificate {
            None => ask(stream, address),
            #[cfg(feature = "tls")]
            Some(certificate) => ask(crate::tls::pinned(stream, address, certificate)?, address),
            #[cfg(not(feature = "tls"))]
            Some(_) => Err(io::Error::other("this program was built without TLS")),
        };
        asked.map_err(|error| failed(format!(": {error}")))
    })?;
    match status.as_str() {
        "HTTP/1.1 200" => Ok(()),
        other => Err(failed(format!(" answers {other:?}"))),
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, WAIT)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    Ok(stream)
}

/// Sends the request and returns the response up to its status code.
fn ask(mut stream: impl Read + Write, address: SocketAddr) -> io::Result<String> {
    write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    stream.flush()?;
    let mut first = [0; 12];
    stream.read_exact(&mut first)?;
    Ok(String::from_utf8_lossy(&first).into_owned())
}
