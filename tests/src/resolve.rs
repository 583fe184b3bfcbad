//! Applies builders, which make values at run time. A vector file must not contain credentials, and need not contain
//! long texts.

use std::collections::BTreeMap;

use crate::json::Json;

/// The saved parts of earlier results: the name, and the JSON text.
pub type Saved = BTreeMap<String, String>;

/// Replaces every builder in `value`. Operators of the matcher stay.
pub fn resolve(value: &Json, saved: &Saved) -> Result<Json, String> {
    if let Some((operator, argument)) = value.operator() {
        return build(operator, argument, saved);
    }
    Ok(match value {
        Json::Array(items) => Json::Array(all(items, saved)?),
        Json::Object(pairs) => {
            Json::Object(pairs.iter().map(|(k, v)| Ok((k.clone(), resolve(v, saved)?))).collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

fn all(items: &[Json], saved: &Saved) -> Result<Vec<Json>, String> {
    items.iter().map(|item| resolve(item, saved)).collect()
}

fn build(operator: &str, argument: &Json, saved: &Saved) -> Result<Json, String> {
    let argument = resolve(argument, saved)?;
    let wrong = || format!("{operator} does not take {}", argument.text());
    let built = match operator {
        "$join" => {
            let Json::Array(parts) = &argument else { return Err(wrong()) };
            let mut joined = String::new();
            for part in parts {
                joined.push_str(part.as_str().ok_or_else(wrong)?);
            }
            Json::String(joined)
        }
        "$repeat" => match arguments(&argument) {
            Some([Json::String(s), n]) => Json::String(s.repeat(n.as_usize().ok_or_else(wrong)?)),
            _ => return Err(wrong()),
        },
        "$list" => match arguments(&argument) {
            Some([Json::String(s), n]) => {
                Json::Array((1..=n.as_usize().ok_or_else(wrong)?).map(|i| Json::String(format!("{s}{i}"))).collect())
            }
            _ => return Err(wrong()),
        },
        "$map" => match arguments(&argument) {
            Some([Json::String(s), n, value]) => Json::Object(
                (1..=n.as_usize().ok_or_else(wrong)?).map(|i| (format!("{s}{i}"), value.clone())).collect(),
            ),
            _ => return Err(wrong()),
        },
        "$nest" => {
            let depth = argument.as_usize().ok_or_else(wrong)?;
            (1..depth).fold(Json::Array(Vec::new()), |inner, _| Json::Array(vec![inner]))
        }
        "$ref" => {
            let name = argument.as_str().ok_or_else(wrong)?;
            Json::parse(saved.get(name).ok_or_else(|| format!("nothing saved as {name}"))?)?
        }
        // This is an operator of the matcher. The matcher refuses an unknown operator.
        _ => Json::Object(vec![(operator.to_owned(), argument)]),
    };
    Ok(built)
}

fn arguments<const N: usize>(argument: &Json) -> Option<&[Json; N]> {
    match argument {
        Json::Array(items) => items.as_slice().try_into().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(text: &str) -> String {
        let saved = Saved::from([("x".to_owned(), r#"{"b":1,"a":2}"#.to_owned())]);
        match resolve(&Json::parse(text).unwrap(), &saved) {
            Ok(value) => value.text(),
            Err(e) => format!("error: {e}"),
        }
    }

    #[test]
    fn builders_build() {
        assert_eq!(built(r#"{"a":[{"$join":["x",{"$repeat":["ab",2]},"y"]}]}"#), r#"{"a":["xababy"]}"#);
        assert_eq!(built(r#"{"$list":["t",3]}"#), r#"["t1","t2","t3"]"#);
        assert_eq!(built(r#"{"$map":["k",2,{"$join":["v"]}]}"#), r#"{"k1":"v","k2":"v"}"#);
        assert_eq!(built(r#"{"$nest":3}"#), "[[[]]]");
        assert_eq!(built(r#"{"p":{"$ref":"x"}}"#), r#"{"p":{"b":1,"a":2}}"#);
        assert_eq!(built(r#"{"$any":true}"#), r#"{"$any":true}"#);
    }

    #[test]
    fn mistakes_are_errors() {
        for text in [r#"{"$ref":"y"}"#, r#"{"$join":"a"}"#, r#"{"$repeat":["a"]}"#, r#"{"$join":[1]}"#] {
            assert!(built(text).starts_with("error: "), "{text}");
        }
    }
}
