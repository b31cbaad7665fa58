use super::*;

/// The parts of a tag do not touch each other, nor the lock.
#[test]
fn parts_of_a_tag_are_apart() {
    for hash in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
        for number in [1, 2, 1_023] {
            let tag = Tag::new(hash, LayoutId::new(number));
            for refused in [false, true] {
                for form in [Form::Narrow, Form::Boxed] {
                    let marked = tag.with_refused(refused).with_form(form);
                    assert!(!marked.is_empty() && marked.is_same_counter(tag));
                    assert_eq!((marked.is_refused(), marked.form()), (refused, form));
                    assert_eq!(marked.layout().get(), number);
                    assert_eq!(marked.fingerprint(), hash & FINGERPRINT);
                    assert_eq!(Tag::from_word(marked.word() | LOCK), marked);
                    assert_eq!(marked.word() & LOCK, 0);
                }
            }
        }
    }
    assert!(Tag::EMPTY.is_empty());
}

/// Counters differ by fingerprint or layout, not by what happened to them.
#[test]
fn other_counters_have_other_tags() {
    let tag = Tag::new(7, LayoutId::new(3));
    assert!(!tag.is_same_counter(Tag::new(8, LayoutId::new(3))));
    assert!(!tag.is_same_counter(Tag::new(7, LayoutId::new(4))));
    assert!(tag.is_same_counter(Tag::new(7 | 1 << FINGERPRINT_BITS, LayoutId::new(3))));
}
