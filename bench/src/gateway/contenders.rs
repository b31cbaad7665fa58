//! The upstream and the proxies in front of it: their settings, one worker thread each.

use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::program::{Draft, Program, command};
use crate::service::Executable;

/// The header that names a caller.
pub const CALLER: &str = "X-User";

/// Bytes of the upstream's answers.
pub const ANSWER: usize = 1_024;

/// The limits of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// Everything passes, and nobody is told apart.
    None,
    /// Everything passes, because the rules have none for client addresses.
    NoRule,
    /// A token bucket for each caller that nobody empties: 1,000 a second, burst 1,000.
    PerCaller,
    /// The same for each client address.
    PerAddress,
    /// One request a minute for each caller, so that all others are denied.
    Denying,
}

/// The headers by which a proxy tells the upstream about the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// Those that tidegate sets.
    AsTidegate,
    /// `X-Forwarded-For` alone.
    AddressAlone,
}

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 without TLS.
    Http2,
    /// HTTP/1.1 over TLS.
    Tls,
}

/// Certificate and key of a server, as PEM.
pub struct Certificate {
    /// The certificate, which also is the root that clients trust.
    pub chain: String,
    /// Its private key.
    pub key: String,
}

/// Starts the upstream: nginx, which answers 1 KB from memory.
pub fn upstream() -> Result<Program, Box<dyn Error>> {
    let draft = Draft::new()?;
    let address = draft.address;
    let answer = "x".repeat(ANSWER);
    let server = format!(
        "server {{ listen {address}; keepalive_requests 1000000000; location / {{ return 200 {answer}; }} }}"
    );
    start_nginx(draft, &server)
}

/// Starts nginx as a proxy.
pub fn nginx(
    upstream: SocketAddr,
    limits: Limits,
    forwarded: ForwardedHeaders,
) -> Result<Program, Box<dyn Error>> {
    let draft = Draft::new()?;
    let address = draft.address;
    let rate = match limits {
        Limits::Denying => "1r/m",
        _ => "1000r/s",
    };
    let limit = match limits {
        Limits::None | Limits::NoRule => "",
        Limits::PerCaller | Limits::PerAddress => "limit_req zone=callers burst=1000 nodelay;",
        Limits::Denying => "limit_req zone=callers; limit_req_status 429;",
    };
    let key = match limits {
        Limits::PerAddress => "$binary_remote_addr",
        _ => "$http_x_user",
    };
    let more_headers = match forwarded {
        ForwardedHeaders::AsTidegate => {
            "proxy_set_header X-Forwarded-Proto $scheme;
             proxy_set_header X-Forwarded-Host $http_host;
             proxy_set_header Forwarded \"for=$remote_addr;host=$http_host;proto=$scheme\";
             proxy_set_header Via \"1.1 nginx\";"
        }
        ForwardedHeaders::AddressAlone => "",
    };
    // 1 M nodes of at most 128 bytes, with room to spare.
    let text = format!(
        "upstream api {{ server {upstream}; keepalive 512; keepalive_requests 1000000000; }}
         limit_req_zone {key} zone=callers:256m rate={rate};
         server {{
           listen {address};
           keepalive_requests 1000000000;
           location / {{
             {limit}
             proxy_pass http://api;
             proxy_http_version 1.1;
             proxy_set_header Connection \"\";
             proxy_set_header Host $host;
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
             {more_headers}
           }}
         }}"
    );
    start_nginx(draft, &text)
}

/// Starts `HAProxy`, which limits nobody.
pub fn haproxy(upstream: SocketAddr) -> Result<Program, Box<dyn Error>> {
    let draft = Draft::new()?;
    let address = draft.address;
    let text = format!(
        "global
  nbthread 1
  maxconn 4000
defaults
  mode http
  http-reuse always
  option forwardfor
  timeout connect 5s
  timeout client 1m
  timeout server 1m
frontend clients
  bind {address}
  default_backend api
backend api
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header Forwarded for=%[src];host=%[req.hdr(host)];proto=http
  http-request set-header Via \"1.1 haproxy\"
  server upstream {upstream}
"
    );
    let file = draft.write("haproxy.cfg", &text)?;
    let mut haproxy = command("haproxy");
    // In the foreground and without a master, so that its process is the worker.
    haproxy.args(["-q", "-db", "-f"]).arg(file);
    draft.start(haproxy)
}

/// Starts tidegate as a proxy for clients without TLS.
pub fn tidegate(upstream: SocketAddr, limits: Limits) -> Result<Program, Box<dyn Error>> {
    let serve = |file: &Path| Ok(Executable::current()?.serve(file));
    start_tidegate(upstream, limits, None, serve)
}

/// Starts tidegate with a certificate.
pub fn tidegate_with(
    upstream: SocketAddr,
    certificate: Option<&Certificate>,
) -> Result<Program, Box<dyn Error>> {
    let serve = |file: &Path| Ok(Executable::current()?.serve(file));
    start_tidegate(upstream, Limits::None, certificate, serve)
}

/// Starts tidegate by a command made of the path of its config file.
pub fn start_tidegate(
    upstream: SocketAddr,
    limits: Limits,
    certificate: Option<&Certificate>,
    serve: impl FnOnce(&Path) -> Result<Command, Box<dyn Error>>,
) -> Result<Program, Box<dyn Error>> {
    let draft = Draft::new()?;
    let address = draft.address;
    let descriptors = match limits {
        Limits::None => "[]".to_owned(),
        Limits::NoRule | Limits::PerAddress => "[{caller: client_address}]".to_owned(),
        Limits::PerCaller | Limits::Denying => format!("[{{caller: 'header:{CALLER}'}}]"),
    };
    let limit = match limits {
        Limits::Denying => "{unit: minute, requests_per_unit: 1, algorithm: token_bucket}",
        // The one caller of a count of instructions sends thousands on a fast machine.
        Limits::PerAddress => "{unit: second, requests_per_unit: 8000, algorithm: token_bucket}",
        _ => "{unit: second, requests_per_unit: 1000, algorithm: token_bucket}",
    };
    let key = match limits {
        Limits::NoRule => "somebody_else",
        _ => "caller",
    };
    let rules = format!("domain: gateway\ndescriptors:\n  - {{key: {key}, rate_limit: {limit}}}\n");
    let rules = draft.write("rules.yaml", &rules)?;
    let tls = match certificate {
        Some(Certificate { chain, key }) => {
            let (chain, key) = (
                draft.write("chain.pem", chain)?,
                draft.write("key.pem", key)?,
            );
            format!(
                ", tls: {{cert: {}, key: {}}}",
                chain.display(),
                key.display()
            )
        }
        None => String::new(),
    };
    let config = format!(
        "rules: {rules}
listeners: {{http: off, grpc: off, admin: off, gateway: {{address: '{address}'{tls}}}}}
gateway:
  upstream: http://{upstream}
  descriptors: {descriptors}
  bounds: {{max_requests: 4000000000, max_connections_per_address: 100000, idle_timeout: 1h}}
",
        rules = rules.display(),
    );
    let config = draft.write("tidegate.yaml", &config)?;
    let command = serve(&config)?;
    draft.start(command)
}

fn start_nginx(draft: Draft, servers: &str) -> Result<Program, Box<dyn Error>> {
    let folder = draft.folder().display();
    // Without a master process, so that the process that is started is the worker. Denials are not logged.
    let text = format!(
        "daemon off;
         master_process off;
         worker_processes 1;
         pid {folder}/nginx.pid;
         error_log stderr crit;
         events {{ worker_connections 16384; }}
         http {{
           access_log off;
           client_body_temp_path {folder}/body;
           proxy_temp_path {folder}/proxy;
           fastcgi_temp_path {folder}/fastcgi;
           uwsgi_temp_path {folder}/uwsgi;
           scgi_temp_path {folder}/scgi;
           {servers}
         }}"
    );
    let file = draft.write("nginx.conf", &text)?;
    let mut nginx = command("nginx");
    nginx.args(["-e", "stderr", "-p"]).arg(draft.folder());
    nginx.arg("-c").arg(file);
    draft.start(nginx)
}
