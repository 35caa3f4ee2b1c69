//! A page for browsers that shows a document, with nothing from elsewhere.

use serde_json::Value as Json;

/// The page without its document.
const PAGE: &str = include_str!("page/page.html");

/// Puts a document into the page.
pub fn page(title: &str, document: &Json) -> String {
    // What HTML looks for in a script is written as an escape, so that no text ends it.
    let data = document
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e");
    let data = data
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    let title: String = title
        .chars()
        .map(|c| match c {
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '&' => "&amp;".to_owned(),
            c => c.to_string(),
        })
        .collect();
    let (head, rest) = PAGE.split_once("@TITLE@").expect("the page has a title");
    let (middle, tail) = rest.split_once("@DATA@").expect("the page has data");
    [head, &title, middle, &data, tail].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_end_scripts_or_titles() {
        let document = serde_json::json!({"name": "</script><b>@DATA@"});
        let page = page("<b>", &document);
        assert!(page.contains("&lt;b&gt;"));
        assert!(!page.contains("</script><b>"));
        assert_eq!(
            page.matches("</script>").count(),
            PAGE.matches("</script>").count()
        );
    }
}
