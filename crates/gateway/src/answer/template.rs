//! Bodies of denials that an operator wrote.

use http::HeaderValue;

use super::Denial;

/// Fills in `{{status}}`, `{{detail}}`, `{{limit}}`, `{{retry_after}}` and `{{decision}}`, escaped for the media type. Unknown names stay as they are.
pub(super) fn fill(text: &str, content_type: &HeaderValue, denial: &Denial) -> String {
    let escape = escape_for(content_type);
    let mut filled = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            filled.push_str("{{");
            rest = after;
            continue;
        };
        match value(name.trim(), denial) {
            Some(value) => escape(&mut filled, &value),
            None => filled.extend(["{{", name, "}}"]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

fn value(name: &str, denial: &Denial) -> Option<String> {
    Some(match name {
        "status" => denial.status.as_u16().to_string(),
        "detail" => denial.detail.clone(),
        // A denial that never ends has none.
        "retry_after" => denial
            .retry_after
            .map(|seconds| seconds.to_string())
            .unwrap_or_default(),
        // A ban and a hidden limit have none.
        "limit" => denial
            .limit
            .map(|limit| limit.to_string())
            .unwrap_or_default(),
        // Empty where no decisions are kept.
        "decision" => denial
            .decision
            .map(|decision| decision.to_string())
            .unwrap_or_default(),
        _ => return None,
    })
}

fn escape_for(content_type: &HeaderValue) -> fn(&mut String, &str) {
    let content_type = content_type.to_str().unwrap_or_default();
    if content_type.contains("html") || content_type.contains("xml") {
        escape_html
    } else if content_type.contains("json") {
        escape_json
    } else {
        String::push_str
    }
}

fn escape_html(to: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            '"' => to.push_str("&quot;"),
            '\'' => to.push_str("&#39;"),
            other => to.push(other),
        }
    }
}

/// The text as it stands between the quotes of a JSON string.
fn escape_json(to: &mut String, text: &str) {
    let quoted = serde_json::Value::from(text).to_string();
    // A JSON string begins and ends with a quote.
    to.push_str(&quoted[1..quoted.len() - 1]);
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::answer::LimitHeaders;

    fn check(content_type: &'static str, text: &str, expected: &str) {
        let denial = Denial {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: LimitHeaders::None,
            detail: "the limit \"a<b\" is used up".to_owned(),
            problem: Vec::new(),
            retry_after: Some(7),
            limit: Some(5),
            decision: "3f9a0c1b2d4e5f60".parse().ok(),
        };
        let content_type = HeaderValue::from_static(content_type);
        assert_eq!(fill(text, &content_type, &denial), expected);
    }

    #[test]
    fn values_are_escaped_for_the_media_type() {
        let text = "{{ status }} {{detail}} {{limit}} {{retry_after}} {{decision}} {{other}} {{";
        let plain = "429 the limit \"a<b\" is used up 5 7 3f9a0c1b2d4e5f60 {{other}} {{";
        check("text/plain", text, plain);
        check(
            "application/json",
            "{{detail}}",
            "the limit \\\"a<b\\\" is used up",
        );
        check(
            "text/html",
            "{{detail}}",
            "the limit &quot;a&lt;b&quot; is used up",
        );
    }
}
