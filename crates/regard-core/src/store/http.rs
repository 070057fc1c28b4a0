//! The only place that downloads over HTTP.

use std::io::Read;

/// A server's response with a file.
pub(crate) struct Response {
    /// The offset of its first byte in the file: 0, or where a download is resumed.
    pub(crate) start: u64,
    /// The number of bytes that follow, if the server states it.
    pub(crate) length: Option<u64>,
    /// The tag of this version of the file (ETag).
    pub(crate) tag: Option<String>,
    pub(crate) body: Box<dyn Read>,
}

/// A request to a server.
#[cfg_attr(not(feature = "hub"), allow(dead_code, reason = "nothing is sent"))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request<'a> {
    /// The first byte to send, if the file still has the tag.
    pub(crate) from: u64,
    pub(crate) tag: Option<&'a str>,
    /// The access token for private models.
    pub(crate) token: Option<&'a str>,
}

#[cfg(not(feature = "hub"))]
pub(crate) fn get(_: &str, _: Request<'_>) -> Result<Response, String> {
    Err("this build cannot fetch files (cargo feature `hub`)".into())
}

/// Requests a file. An error contains the message of the server or the network.
#[cfg(feature = "hub")]
pub(crate) fn get(url: &str, request: Request<'_>) -> Result<Response, String> {
    use std::time::Duration;
    let wait = Some(Duration::from_secs(60));
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(wait)
        .timeout_recv_response(wait)
        .timeout_per_read(wait)
        .user_agent(concat!("regard/", env!("CARGO_PKG_VERSION")));
    let mut call = config.build().new_agent().get(url);
    if request.from > 0 {
        call = call.header("Range", format!("bytes={}-", request.from));
        if let Some(tag) = request.tag {
            call = call.header("If-Range", tag);
        }
    }
    if let Some(token) = request.token {
        call = call.header("Authorization", format!("Bearer {token}"));
    }
    let answer = call.call().map_err(|error| error.to_string())?;
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let start = match answer.status().as_u16() {
        200 => 0,
        206 if request.from > 0 => {
            let range = header("content-range").unwrap_or_default();
            let start = range.strip_prefix("bytes ").and_then(|range| range.split('-').next()?.parse().ok());
            start
                .filter(|&start: &u64| start == request.from)
                .ok_or_else(|| format!("it sends {range:?}, not what follows byte {}", request.from))?
        }
        // The file is not longer than what we have: it may be a different one.
        416 if request.from > 0 => return get(url, Request { from: 0, ..request }),
        status => return Err(format!("HTTP status {status}")),
    };
    let tag = header("etag").filter(|tag| !tag.starts_with("W/")).map(str::to_owned);
    let length = header("content-length").and_then(|length| length.parse().ok());
    Ok(Response { start, length, tag, body: Box::new(answer.into_body().into_reader()) })
}
