//! Tests of the index of names: each mention as `name line:column` of the definition.

use expect_test::{Expect, expect};
use tfrt_ir::{
    Dialects, Source,
    index::{AliasMeaning, NameTarget, Role, parse_with_index},
};

/// Lists each use with the place of its definition, and each definition.
fn check(text: &str, expected: Expect) {
    let source = Source::new("a.mlir", text);
    let parsed = parse_with_index(&source, &Dialects::default());
    let index = &parsed.index;
    let place = |offset: u32| {
        let (line, column) = source.line_column(offset as usize);
        format!("{line}:{column}")
    };
    let mut lines = String::new();
    for mention in index.mentions() {
        let name = &text[mention.span.range()];
        let definition = index.mentions_of(mention.target).find(|other| {
            let is_by_name = matches!(mention.target, NameTarget::Alias | NameTarget::Symbol);
            other.role == Role::Definition && (!is_by_name || text[other.span.range()] == *name)
        });
        let at = place(mention.span.start);
        let line = match (mention.role, definition) {
            (Role::Definition, _) => format!("{at} gives {name}\n"),
            (Role::Use, Some(found)) => {
                format!("{at} {name} of {}\n", place(found.span.start))
            }
            (Role::Use, None) => format!("{at} {name} of nothing\n"),
        };
        lines.push_str(&line);
    }
    expected.assert_eq(&lines);
}

#[test]
fn values_are_those_of_the_nearest_scope() {
    check(
        "func.func @f(%x: i32) -> i32 {
  %y = tfrt.repeat.i32 %x, %x : i32 {
    tfrt.return %x : i32
  }
  tfrt.return %y : i32
}",
        expect![[r#"
            1:11 gives @f
            1:14 gives %x
            2:3 gives %y
            2:24 %x of 1:14
            2:28 %x of 1:14
            2:28 gives %x
            3:17 %x of 2:28
            5:15 %y of 2:3
        "#]],
    );
}

#[test]
fn forward_uses_are_of_what_comes() {
    check(
        r#""a"(%x, %p#1) : (i32, i32) -> ()
%x = "b"() : () -> i32
%p:2 = "c"() ({
  "d"(%q) : (i32) -> ()
^next(%q: i32):
  "e"(%q)[^next] : (i32) -> ()
}) : () -> (i32, i32)"#,
        expect![[r#"
            1:5 %x of 2:1
            1:9 %p#1 of 3:1
            2:1 gives %x
            3:1 gives %p
            3:1 gives %p
            4:7 %q of 5:7
            5:1 gives ^next
            5:7 gives %q
            6:7 %q of 5:7
            6:11 ^next of 5:1
        "#]],
    );
}

#[test]
fn what_failed_still_defines() {
    check(
        "%x = tfrt.constant.i32 nonsense
%y = tfrt.add.i32 %x, %x
%z = tfrt.add.i32 %y, %later
%later = tfrt.constant.i32 also nonsense",
        expect![[r#"
            1:1 gives %x
            2:1 gives %y
            2:19 %x of 1:1
            2:23 %x of 1:1
            3:1 gives %z
            3:19 %y of 2:1
            3:23 %later of 4:1
            4:1 gives %later
        "#]],
    );
}

#[test]
fn symbols_and_aliases_are_named() {
    check(
        "!t = i32
#one = 1 : i32
func.func @f(%x: !t) {
  tfrt.return loc(#where)
}
func.func @g(%x: !t) attributes {a = #one, b = @f, c = !missing} {
  tfrt.call @f(%x) : (!t) -> ()
  tfrt.return
}
#where = loc(\"x\":1:2)",
        expect![[r#"
            1:1 gives !t
            2:1 gives #one
            3:11 gives @f
            3:14 gives %x
            3:18 !t of 1:1
            4:19 #where of 10:1
            6:11 gives @g
            6:18 !t of 1:1
            6:38 #one of 2:1
            6:48 @f of 3:11
            6:56 !missing of nothing
            10:1 gives #where
        "#]],
    );
}

#[test]
fn aliases_have_meanings() {
    let text = "!a = i32\n!b = tuple<!a>\n#c = [1, 2]\n#d = loc(unknown)";
    let parsed = parse_with_index(&Source::new("a.mlir", text), &Dialects::default());
    let meanings = parsed.index.mentions().iter().filter_map(|mention| {
        Some(match parsed.index.meaning(mention.span)? {
            AliasMeaning::Type(ty) => ty.to_string(),
            AliasMeaning::Attribute(attribute) => attribute.to_string(),
            AliasMeaning::Location(location) => location.to_string(),
        })
    });
    expect![[r#"
        i32
        tuple<i32>
        [1, 2]
        unknown"#]]
    .assert_eq(&meanings.collect::<Vec<_>>().join("\n"));
}

#[test]
fn extents_cover_whole_operations() {
    let text = "module {\n  %x = tfrt.constant.i32 1 loc(unknown)\n}";
    let parsed = parse_with_index(&Source::new("a.mlir", text), &Dialects::default());
    let extents = parsed.index.op_extents().iter();
    let texts: Vec<&str> = extents.map(|extent| &text[extent.span.range()]).collect();
    assert_eq!(texts, [text, "%x = tfrt.constant.i32 1 loc(unknown)"]);
    let around = |offset| parsed.index.enclosing(offset).count();
    assert_eq!([0, 9, 11, text.len()].map(around), [1, 1, 2, 1]);
}

#[test]
fn every_mention_is_the_text_of_a_name() {
    let text = "module @m { func.func @f() { tfrt.call @m::@f() : () -> () } }\n%x = \"a\"(%x";
    for end in 0..=text.len() {
        let part = &text[..end];
        let parsed = parse_with_index(&Source::new("a.mlir", part), &Dialects::default());
        for mention in parsed.index.mentions() {
            let name = &part[mention.span.range()];
            assert!(name.starts_with(['@', '%']), "{name}");
        }
    }
}
