use super::*;

fn html(text: &str) -> String {
    render(text, &Variables::default(), plain_link).html
}

#[test]
fn markdown_renders_without_active_content() {
    // case, source, expected HTML
    let table = [
        ("headings", "# Terms\n## Key", "<h2 id=\"terms\">Terms</h2>\n<h3 id=\"key\">Key</h3>\n"),
        (
            "lower headings",
            "### Terms\n###### Key\n## Other",
            "<h3 id=\"terms\">Terms</h3>\n<h6 id=\"key\">Key</h6>\n<h2 id=\"other\">Other</h2>\n",
        ),
        (
            "a heading with a style",
            "# Terms {style=color:red}",
            "<h2 id=\"terms-stylecolorred\">Terms {style=color:red}</h2>\n",
        ),
        ("a block of HTML", "<script>alert(1)</script>\n", "&lt;script&gt;alert(1)&lt;/script&gt;\n"),
        ("HTML in a line", "a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>\n"),
        ("an image", "![a seal](https://example.com/x.png)", "<p>a seal</p>\n"),
        ("a link", "[mail](mailto:a@example.com)", "<p><a href=\"mailto:a@example.com\">mail</a></p>\n"),
        ("a link that runs", "[x](javascript:alert(1)) y", "<p>x y</p>\n"),
        ("a link that runs, in capitals", "[x](JavaScript:alert(1))", "<p>x</p>\n"),
        ("a link without a scheme", "[x](//example.com)", "<p>x</p>\n"),
    ];
    for (situation, source, expected) in table {
        assert_eq!(html(source), expected, "{situation}");
    }
    let table = html("| a |\n|--:|\n| 1 |\n");
    assert!(table.contains("<td>1</td>") && !table.contains("style"), "{table}");
    assert!(
        table.starts_with("<div class=\"wide-table\" role=\"group\"") && table.ends_with("</table>\n</div>\n"),
        "{table}"
    );
}

#[test]
fn code_names_its_language_and_alternatives_are_together() {
    let one = html("```sh\na <b\n```\n");
    assert!(one.starts_with("<div class=\"snippet\" data-language=\"Shell\">"), "{one}");
    assert!(one.contains("aria-label=\"Shell\"><code>a &lt;b\n</code></pre></div>"), "{one}");
    let unknown = html("```\"><b>\nx\n```\n");
    assert!(unknown.contains("data-language=\"Code\""), "text of the source is in an attribute: {unknown}");
    let run = html("```py\na\n```\n\n```go\nb\n```\n\n```rust\nc\n```\n\nText\n\n```js\nd\n```\n");
    assert_eq!(run.matches("code-choices").count(), 1, "{run}");
    assert_eq!(run.matches("<div").count(), run.matches("</div>").count(), "{run}");
    let (together, rest) = run.split_once("<p>Text").unwrap();
    assert!(together.starts_with("<div class=\"code-choices\">") && together.ends_with("</div>\n</div>\n"), "{run}");
    assert!(!rest.contains("code-choices"), "{run}");
    let two_runs = html("```py\na\n```\n```go\nb\n```\n\nText\n\n```py\na\n```\n```go\nb\n```\n");
    assert_eq!(two_runs.matches("code-choices").count(), 2, "{two_runs}");
}

#[test]
fn headings_have_the_ids_of_github_and_none_twice() {
    let rendered = render("## A `b`: C\n### Main\n## A b c\n## !\n", &Variables::default(), plain_link);
    let ids: Vec<_> = rendered.headings.iter().map(|heading| (heading.id.as_str(), heading.is_top)).collect();
    assert_eq!(ids, [("a-b-c", true), ("main-1", false), ("a-b-c-1", true), ("section", true)]);
    assert!(rendered.html.contains("<h3 id=\"main-1\">"), "{}", rendered.html);
}

#[test]
fn values_are_text_wherever_they_are() {
    let value = "*a* <b> [x](/y) `c`";
    let variables = Variables::new([("brand", value.to_owned())]);
    let text = "# {{ brand }}\n\n{{ brand }} and **{{ brand }}** or `{{ brand }}`\n\n```sh\n{{ brand }}\n```\n";
    let (title, rendered) = render_titled(text, &variables, plain_link).unwrap();
    assert_eq!(title, value);
    let shown = "*a* &lt;b&gt; [x](/y) `c`";
    assert_eq!(rendered.html.matches(shown).count(), 4, "{}", rendered.html);
    assert!(!rendered.html.contains("{{") && !rendered.html.contains("<em>") && !rendered.html.contains("<a "));
}

#[test]
fn a_title_is_the_first_heading_and_needed() {
    let (title, rendered) = render_titled("Before\n\n# A `b`\n\n## C\n", &Variables::default(), plain_link).unwrap();
    assert_eq!((title.as_str(), rendered.html.as_str()), ("A b", "<p>Before</p>\n<h2 id=\"c\">C</h2>\n"));
    let (_, rendered) = render_titled("# A\n\nOne *two*\n`three`.\n\nFour", &Variables::default(), plain_link).unwrap();
    assert_eq!(rendered.summary, "One two three.");
    for text in ["", "No heading.", "#\n\nText"] {
        assert!(render_titled(text, &Variables::default(), plain_link).is_none(), "{text}");
    }
}

#[test]
fn escaped_text_has_no_markup() {
    assert_eq!(escape("a <b> & \"c\" 'd'"), "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
}
