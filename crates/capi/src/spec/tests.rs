use super::*;

fn parse(input: &str, output: &str, attrs: &[&str]) -> Result<OpSpec, String> {
    let list = |text: &str| match text {
        "" => Vec::new(),
        text => vec![text.to_owned()],
    };
    let texts = Texts {
        attrs: attrs.iter().map(|text| (*text).to_owned()).collect(),
        inputs: list(input),
        outputs: list(output),
    };
    OpSpec::parse("Cm", &texts).map_err(|error| error.message().to_owned())
}

fn refused(input: &str, attrs: &[&str]) -> String {
    parse(input, "o: float", attrs).unwrap_err()
}

#[test]
fn definitions_are_read_as_tensorflow_reads_them() {
    let spec = parse("", "o: T", &["T: {float, double} = DT_FLOAT"]).unwrap();
    assert_eq!(spec.attrs[0].allowed_types, [1, 2]);
    assert!(matches!(spec.attrs[0].default, Some(Attr::Type(1))));
    let spec = parse("x: N * float", "o: float", &["N: int >= 2"]).unwrap();
    assert_eq!(spec.attrs[0].minimum, Some(2));
    assert_eq!(spec.inputs[0].count.as_deref(), Some("N"));
    let spec = parse("x: L", "o: float", &["L: list(type) >= 0"]).unwrap();
    assert_eq!(
        (&spec.inputs[0].types, spec.attrs[0].minimum),
        (&ArgTypes::List("L".to_owned()), Some(0))
    );
    let spec = parse("x: Ref(float)", "o: Ref(float)", &[]).unwrap();
    assert!(spec.inputs[0].is_reference && spec.outputs[0].is_reference);
    let attrs = [
        r#"a: list(string) = ["p", "q"]"#,
        "b: shape = { unknown_rank: true }",
        r#"c: {"u","v"} = "u""#,
        "d: numbertype",
        "e: {bfloat16, float, quantizedtype} = DT_FLOAT",
        "f: func",
        "g: shape = { dim { size: 2 } dim { size: -1 } }",
        "h: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 7 }",
        "i: list(int) = [1, -2]",
        "j: list(type) = []",
        "k: float = 1.5",
        "l: bool = true",
    ];
    let spec = parse("", "o: float", &attrs).unwrap();
    let text = |index: usize| spec.attrs[index].default.as_ref().unwrap().to_string();
    assert_eq!(text(0), r#"["p", "q"]"#);
    assert!(matches!(spec.attrs[1].default, Some(Attr::Shape(None))));
    assert_eq!(spec.attrs[2].allowed_texts, ["u", "v"]);
    assert_eq!(spec.attrs[3].allowed_types.len(), 19);
    assert_eq!(spec.attrs[4].allowed_types, [14, 1, 11, 12, 13, 15, 16]);
    assert_eq!(
        (text(6).as_str(), text(7).as_str()),
        ("[2, -1]", "float [2]")
    );
    assert_eq!((text(8).as_str(), text(9).as_str()), ("[1, -2]", "[]"));
    assert_eq!((text(10).as_str(), text(11).as_str()), ("1.5", "true"));
    for name in ["_CmHidden", "Ns>CmOp", "__Mkl"] {
        assert!(OpSpec::parse(name, &Texts::default()).is_ok(), "{name}");
    }
}

#[test]
fn definitions_that_are_none_are_refused_in_tensorflows_words() {
    let lower = OpSpec::parse("cmlower", &Texts::default()).unwrap_err();
    assert_eq!(
        lower.message(),
        "Invalid name: cmlower (Did you use CamelCase?)"
    );
    for (input, attrs, expected) in [
        (
            "X: float",
            &[][..],
            "Trouble parsing 'name:' from Input(\"X: float\") for Op Cm",
        ),
        (
            "x: Q",
            &[],
            "Reference to unknown attr 'Q' from Input(\"x: Q\") for Op Cm",
        ),
        (
            "x: N * float",
            &["N: float"],
            "Attr 'N' has minimum for unsupported type float",
        ),
        (
            "",
            &["a: int = 1.5"],
            "Could not parse default value '1.5' from Attr(\"a: int = 1.5\") for Op Cm",
        ),
        (
            "",
            &["a: wibble"],
            "Trouble parsing type string at 'wibble' from Attr(\"a: wibble\") for Op Cm",
        ),
        ("", &["a: int", "a: int"], "Duplicate name: a"),
        (
            "x: float\ny: float",
            &[],
            "Extra 'y: float' unparsed at the end from Input(\"x: float\ny: float\") for Op Cm",
        ),
        (
            "",
            &["a: int >= 3 = 1"],
            "Value for attr 'a' of 1 must be at least minimum 3",
        ),
    ] {
        assert_eq!(refused(input, attrs), expected);
    }
    for text in [
        "a: list(int",
        "a: {float",
        "a: {\"x",
        "a: string = \"",
        "a: shape = { dim",
        "a:",
        "",
        "a: list(int) = [1",
    ] {
        refused("", &[text]);
    }
}
