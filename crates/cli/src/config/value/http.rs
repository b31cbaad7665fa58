//! The parts of HTTP messages.

use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value as Json, json};

use super::{Mismatch, Shown, Value};

// === impl Value for Method ===

impl Value for Method {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        // Methods are in capitals, and `get` is none (RFC 9110, section 9.1).
        Self::from_bytes(text.to_ascii_uppercase().as_bytes())
            .map_err(|_| Mismatch::new("a method", "write GET, POST or another method"))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.as_str()))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

// === impl Value for StatusCode ===

impl Value for StatusCode {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let status = Self::from_bytes(text.as_bytes()).ok();
        // Responses of 1xx are not the last of a request.
        status
            .filter(|status| (200..=599).contains(&status.as_u16()))
            .ok_or_else(|| Mismatch::new("a status", "write a number from 200 to 599"))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.as_u16()))
    }

    fn schema() -> Json {
        json!({ "type": "integer", "minimum": 200, "maximum": 599 })
    }
}

// === impl Value for HeaderName ===

impl Value for HeaderName {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        text.parse().map_err(|_| {
            Mismatch::new(
                "the name of a header",
                "write letters, digits and hyphens, such as x-request-id",
            )
        })
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.as_str()))
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }
}

// === impl Value for HeaderValue ===

impl Value for HeaderValue {
    fn parse(text: &str) -> Result<Self, Mismatch> {
        let value = Self::from_str(text).ok();
        value
            .filter(|value| value.to_str().is_ok())
            .ok_or_else(|| Mismatch::new("the value of a header", "use visible ASCII and blanks"))
    }

    fn show(&self) -> Shown {
        Shown::Plain(json!(self.to_str().unwrap_or_default()))
    }

    fn schema() -> Json {
        json!({ "type": ["string", "number", "boolean"] })
    }
}
