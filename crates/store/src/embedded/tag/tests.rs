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

/// A counter that is asked for again is marked for more than a second, and for less than three.
#[test]
fn a_mark_lasts_more_than_a_second() {
    const SECOND: u64 = 1_000_000_000;
    let new = Tag::new(7, LayoutId::new(1_023)).with_refused(true);
    for start in [0, 1 << PASS_BITS, 1_800_000_000 * SECOND] {
        for asked in (0..4 * SECOND)
            .step_by(100_000_001)
            .map(|after| start + after)
        {
            assert_eq!(new.evictable_at(pass(asked)), Time::ZERO);
            let marked = new.marked(pass(asked));
            assert!(marked.is_same_counter(new) && marked.is_refused());
            assert_eq!(marked.unmarked(), new);
            let end = marked.evictable_at(pass(asked)).nanos();
            assert!(end > asked + SECOND && end < asked + 3 * SECOND);
            assert_eq!(marked.evictable_at(pass(end - 1)).nanos(), end);
            assert_eq!(marked.evictable_at(pass(end)), Time::ZERO);
        }
    }
}

fn pass(nanos: u64) -> Pass {
    Pass::at(Time::from_nanos(nanos))
}

/// Counters differ by fingerprint or layout, not by what happened to them.
#[test]
fn other_counters_have_other_tags() {
    let tag = Tag::new(7, LayoutId::new(3));
    assert!(!tag.is_same_counter(Tag::new(8, LayoutId::new(3))));
    assert!(!tag.is_same_counter(Tag::new(7, LayoutId::new(4))));
    assert!(tag.is_same_counter(Tag::new(7 | 1 << FINGERPRINT_BITS, LayoutId::new(3))));
}
