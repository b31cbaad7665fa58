use super::*;

fn layout(window: u64) -> Layout {
    let shapes = [
        Shape::Instant,
        Shape::Window,
        Shape::Portion,
        Shape::Pair,
        Shape::Log,
        Shape::Counts,
    ];
    let shape = shapes[usize::try_from(window % 6).expect("small")];
    Layout { shape, window }
}

/// As many layouts as there are numbers get one each, until it is released; the next one gets none.
#[test]
fn each_layout_has_a_number_of_its_own() {
    let layouts = Layouts::new();
    let assignment = layouts.assignment();
    let all: Vec<Layout> = (0..MOST_LAYOUTS as u64)
        .map(|n| layout(1_000_000 + n))
        .collect();
    let mut numbers: Vec<u16> = Vec::new();
    for &layout in &all {
        numbers.push(assignment.number(layout).expect("a number").get());
    }
    for (&layout, &number) in all.iter().zip(&numbers) {
        assert_eq!(assignment.number(layout).expect("the same").get(), number);
        assert_eq!(layouts.get(LayoutId::new(number)), Some(layout));
        let found = layouts.find(layout).map(LayoutId::get);
        assert!(found.is_none_or(|found| found == number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all.len(), "no number twice");
    assert_ne!(numbers[0], 0, "0 marks an empty slot");
    let (other, gone) = (layout(2_000_000), all[7]);
    assert_eq!(assignment.number(other), None);
    let retired = assignment.retire(|_, layout| layout == gone);
    assert_eq!(
        layouts.get(retired[0]),
        Some(gone),
        "it still tells how states read"
    );
    assert_eq!((layouts.search(gone), layouts.find(gone)), (None, None));
    assert!(!layouts.is_current(retired[0], gone));
    assert_eq!(assignment.number(other), None, "not before it is released");
    assignment.release(retired[0]);
    assert_eq!(assignment.number(other), Some(retired[0]));
    assert_eq!(assignment.number(gone), None);
}

/// The index of the last window of time fits its bits, whatever the window.
#[test]
fn indices_fit_until_the_end_of_time() {
    for bits in 20..58 {
        for window in [1 << bits, (1 << bits) + 1, (2 << bits) - 1] {
            let index_bits = layout(window).index_bits();
            let last = Time::MAX.nanos() / window;
            assert_eq!(last.checked_shr(index_bits).unwrap_or(0), 0, "{window}");
        }
    }
}
