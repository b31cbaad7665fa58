use super::*;
use crate::{HeaderText, Headers, Identities};

const HASH_KEY: &[u8] = b"a key for hashes that tests share";

/// The only header is `x-api-key`, with this value.
struct KeyHeader(String);

impl Headers for KeyHeader {
    fn value(&self, name: &str) -> Option<HeaderText<'_>> {
        (name == "x-api-key").then(|| self.0.as_str().into())
    }
}

fn hasher() -> ApiKeyHasher {
    ApiKeyHasher::new(HASH_KEY).expect("a hasher")
}

fn table(text: &str) -> ApiKeyTable {
    ApiKeyTable::read("keys.yaml", text.as_bytes()).expect("a table")
}

fn check_faults(text: &str, expected: &[(usize, &str)]) {
    let report = ApiKeyTable::read("keys.yaml", text.as_bytes()).expect_err("faults");
    let faults: Vec<(usize, String)> = report
        .iter()
        .map(|fault| (fault.line, fault.message.clone()))
        .collect();
    let expected: Vec<(usize, String)> = expected
        .iter()
        .map(|(line, message)| (*line, (*message).to_owned()))
        .collect();
    assert_eq!(faults, expected, "{text}");
}

/// The id that the key `given`, sent as the header and as the query, has in a table with `known`.
fn found(known: &str, given: &str) -> [Option<String>; 2] {
    let text = format!("keys: [{{id: acme, hash: {}}}]", hasher().hash_hex(known));
    let uri = format!("/a?key={given}");
    let headers = KeyHeader(given.to_owned());
    let request = Request {
        method: None,
        uri: Some(&uri),
        host: None,
        client: None,
        headers: &headers,
        identities: Identities::none(),
        claims: None,
        certificate: None,
        route: None,
    };
    ["header:X-Api-Key", "query:key"].map(|place| {
        let keys = ApiKeys::new(place.parse().expect(place), hasher(), table(&text));
        keys.find(&request).map(|key| key.id.clone().into())
    })
}

#[test]
fn a_known_key_has_an_id_and_an_unknown_one_has_none() {
    let acme = || Some("acme".to_owned());
    assert_eq!(found("k-123", "k-123"), [acme(), acme()]);
    assert_eq!(found("k-123", "k-124"), [None, None]);
    assert_eq!(found("k-123", "K-123"), [None, None]);
    assert_eq!(found("k-123", ""), [None, None]);
    let longest = "k".repeat(MAX_KEY_BYTES);
    assert_eq!(found(&longest, &longest), [acme(), acme()]);
    let longer = "k".repeat(MAX_KEY_BYTES + 1);
    assert_eq!(found(&longer, &longer), [None, None]);
}

/// `printf %s k-123 | openssl dgst -sha256 -hmac 'a key for hashes that tests share'`
#[test]
fn hashes_are_hmac_sha_256() {
    let expected = "2898e08f73bf7fb0e90cbee60a15c26e54755f94d13349d84ed218e6aafe1aa4";
    assert_eq!(hasher().hash_hex("k-123"), expected);
    let with_line_end = [HASH_KEY, b"\r\n"].concat();
    let hasher = ApiKeyHasher::new(&with_line_end).expect("a hasher");
    assert_eq!(hasher.hash_hex("k-123"), expected);
    let fault = ApiKeyHasher::new(&HASH_KEY[..31]).expect_err("too short");
    assert_eq!(fault, ShortHashKey { given: 31 });
}

#[test]
fn tables_are_read() {
    let upper = hasher().hash_hex("a").to_uppercase();
    let text = format!(
        "# callers\nkeys:\n  - {{id: a, hash: {upper}, plan: premium, tenant: acme}}\n  - id: 7\n    hash: {}\n",
        hasher().hash_hex("b")
    );
    let table = table(&text);
    assert_eq!(table.len(), 2);
    let entry = |key: &str| table.entries[&hasher().hash(key)].clone();
    let expected = ApiKey {
        id: "a".into(),
        plan: Some("premium".into()),
        tenant: Some("acme".into()),
    };
    assert_eq!(entry("a"), expected);
    assert_eq!((&*entry("b").id, entry("b").plan), ("7", None));
    assert!(self::table("keys: []").is_empty());
}

#[test]
fn all_faults_are_told_with_their_lines() {
    let hash = hasher().hash_hex("a");
    check_faults(
        &format!(
            "keys:\n- id: a\n  hash: {hash}\n- id: a\n  hash: {hash}\n- plan: ''\n  hsah: x\n- id: b\n  hash: abc\n- 7\nkey: x\n"
        ),
        &[
            (4, "the id `a` is already on line 2"),
            (5, "this hash is already on line 3"),
            (6, "`id` is missing"),
            (6, "`hash` is missing"),
            (
                6,
                "`plan` is a text of 1 to 128 bytes without control characters",
            ),
            (
                7,
                "`hsah` is not a field; there is one of `id`, `hash`, `plan`, `tenant`",
            ),
            (9, "`hash` is 64 hexadecimal digits"),
            (
                10,
                "a key is a block with `id:` and `hash:`; found a single value",
            ),
            (11, "`key` is not a field; there is one of `keys`"),
        ],
    );
    check_faults("", &[(1, "the table of API keys is empty")]);
    check_faults(
        "[]",
        &[(
            1,
            "the table of API keys is a block with `keys:`; found a list",
        )],
    );
    check_faults("{}", &[(1, "`keys` is missing")]);
    let list = "`keys` is a list; begin each key with `-`; found nothing";
    check_faults("keys:\n", &[(1, list)]);
    let hash = "g".repeat(64);
    let digits = "`hash` is 64 hexadecimal digits";
    check_faults(&format!("keys: [{{id: a, hash: {hash}}}]"), &[(1, digits)]);
}

#[test]
fn a_place_prints_as_it_reads() {
    for text in ["bearer", "header:x-api-key", "cookie:key", "query:api key"] {
        let place: ApiKeyPlace = text.parse().expect(text);
        assert_eq!(place.to_string(), text);
    }
    let fault = "query:".parse::<ApiKeyPlace>().expect_err("no name");
    assert_eq!(fault.to_string(), "`query:` needs a text after the colon");
}

#[test]
fn a_debug_print_shows_no_caller() {
    let text = format!("keys: [{{id: acme, hash: {}}}]", hasher().hash_hex("k"));
    let place = ApiKeyPlace::Header(TokenPlace::Bearer);
    let printed = format!("{:?}", ApiKeys::new(place, hasher(), table(&text)));
    assert!(!printed.contains("acme"), "{printed}");
}
