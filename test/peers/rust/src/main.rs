//! A server and a host on rmcp: `peer server stdio | http PORT`, `peer host`.
#![allow(deprecated)] // Sampling, roots and log messages are deprecated there, and in use.
mod host;
mod server;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args[1].as_str() {
        "host" => host::serve().await,
        _ => server::serve(&args[2], args.get(3).map(String::as_str)).await,
    }
}
