//! Many clients at once against a running server: how many requests a second, how long each takes,
//! how many fail.
//!
//! ```sh
//! cargo run --release -p regard-serve --example load -- 127.0.0.1:5000 sentences.en en de 64 5000
//! ```
//!
//! Each client has a connection of its own and sends its next request when the last one is
//! answered. The sentences of the file are taken in turn. One line of JSON is printed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Plan {
    address: String,
    bodies: Vec<String>,
    clients: usize,
    requests: usize,
}

fn main() -> ExitCode {
    match plan().and_then(|plan| load(&plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan() -> Outcome<Plan> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, file, source, target, clients, requests] = arguments.as_slice() else {
        return Err("usage: load HOST:PORT FILE SOURCE TARGET CLIENTS REQUESTS".into());
    };
    let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    let body = |line: &str| {
        let pairs = [("q", line), ("source", source), ("target", target)];
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    };
    let bodies: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(body).collect();
    if bodies.is_empty() {
        return Err(format!("{file}: there is no line in it").into());
    }
    let number =
        |text: &String| text.parse::<usize>().map_err(|_| format!("{text}: a whole number is needed"));
    Ok(Plan {
        address: address.clone(),
        bodies,
        clients: number(clients)?.max(1),
        requests: number(requests)?,
    })
}

fn load(plan: &Plan) -> Outcome<()> {
    let next = AtomicUsize::new(0);
    let errors = Mutex::new(Vec::<String>::new());
    let times = Mutex::new(Vec::<Duration>::with_capacity(plan.requests));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..plan.clients {
            scope.spawn(|| {
                let (mine, failed) = client(plan, &next);
                times.lock().unwrap_or_else(PoisonError::into_inner).extend(mine);
                errors.lock().unwrap_or_else(PoisonError::into_inner).extend(failed);
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    let errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    times.sort();
    let at = |share: f64| {
        let place = (share * times.len() as f64) as usize;
        times.get(place.min(times.len().saturating_sub(1))).map_or(0.0, |t| t.as_secs_f64() * 1e3)
    };
    println!(
        "{{\"clients\": {}, \"requests\": {}, \"seconds\": {seconds:.3}, \"requests_per_s\": {:.1}, \"p50_ms\": {:.1}, \
         \"p99_ms\": {:.1}, \"errors\": {}}}",
        plan.clients,
        times.len(),
        times.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        errors.len()
    );
    match errors.first() {
        Some(first) => Err(format!("{} requests failed, the first with: {first}", errors.len()).into()),
        None => Ok(()),
    }
}

/// Sends requests until there are enough of them.
fn client(plan: &Plan, next: &AtomicUsize) -> (Vec<Duration>, Vec<String>) {
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    let mut connection = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= plan.requests {
            return (times, failed);
        }
        let start = Instant::now();
        match request(plan, &mut connection, &plan.bodies[number % plan.bodies.len()]) {
            Ok(()) => times.push(start.elapsed()),
            Err(error) => {
                connection = None;
                failed.push(error.to_string());
            }
        }
    }
}

fn request(plan: &Plan, connection: &mut Option<BufReader<TcpStream>>, body: &str) -> Outcome<()> {
    let stream = match connection {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(&plan.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(120)))?;
            connection.insert(BufReader::new(stream))
        }
    };
    let head = format!(
        "POST /translate HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        plan.address,
        body.len()
    );
    stream.get_mut().write_all(format!("{head}{body}").as_bytes())?;
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line)?;
    let good = line.starts_with("HTTP/1.1 200");
    let status = line.trim().to_owned();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    if !good {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&answer)).into());
    }
    Ok(())
}
