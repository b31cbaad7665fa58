//! Every YAML block of the docs does what the docs say.
//!
//! A block marked `yaml` compiles without a word, `yaml warns` with warnings, and `yaml refused`
//! not at all; the `text` block after the last is what is said about it.

use crate::support::{compile_err, compile_ok};

const RULES: &str = include_str!("../../../../docs/rules.md");

/// A fenced block: what is written after the fence, and the content.
struct Block<'a> {
    kind: &'a str,
    text: &'a str,
}

fn blocks(document: &str) -> Vec<Block<'_>> {
    let fences = document.split("\n```").skip(1).step_by(2);
    fences
        .filter_map(|fence| fence.split_once('\n'))
        .map(|(kind, text)| Block { kind, text })
        .collect()
}

const LLM_TOKENS: &str = include_str!("../../../../docs/llm-tokens.md");

#[test]
fn the_rules_for_llm_tokens_hold() {
    let blocks = blocks(LLM_TOKENS);
    let is_rules = |block: &&Block<'_>| block.kind == "yaml rules.yaml";
    let rules: Vec<_> = blocks.iter().filter(is_rules).collect();
    assert_eq!(rules.len(), 1);
    let warnings = compile_ok(rules[0].text).warnings;
    assert!(warnings.is_empty(), "{warnings}");
}

#[test]
fn the_blocks_of_the_rules_page_hold() {
    let blocks = blocks(RULES);
    let is_yaml = |block: &&Block<'_>| block.kind.starts_with("yaml");
    assert_eq!(
        blocks.iter().filter(is_yaml).count(),
        RULES.matches("\n```yaml").count()
    );
    for (at, block) in blocks.iter().enumerate() {
        match block.kind {
            "yaml" => {
                let warnings = compile_ok(block.text).warnings;
                assert!(warnings.is_empty(), "{}\n{warnings}", block.text);
            }
            "yaml warns" => assert!(
                !compile_ok(block.text).warnings.is_empty(),
                "{}",
                block.text
            ),
            "yaml refused" => {
                let said = blocks.get(at + 1).filter(|next| next.kind == "text");
                let said = said.expect("a text block after the refused one").text;
                assert_eq!(compile_err(block.text).to_string(), format!("{said}\n"));
            }
            kind => assert_eq!(kind, "text"),
        }
    }
}
