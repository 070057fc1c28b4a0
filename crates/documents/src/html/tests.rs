use super::*;
use crate::words::{Translation, Word};

/// Translates each sentence by turning the order of its words round, in capitals; a mark at the end
/// stays there.
fn backwards(html: &str) -> String {
    let document = document(html);
    let translation: Vec<Translation> = document.sentences.iter().map(|s| reversed(&s.text)).collect();
    document.render(html, &translation).text
}

fn reversed(text: &str) -> Translation {
    let (body, mark) = match text.strip_suffix('.') {
        Some(body) => (body, "."),
        None => (text, ""),
    };
    let words: Vec<&str> = body.split_whitespace().collect();
    let turned = words.iter().enumerate().rev().map(|(i, word)| Word::new(word.to_uppercase(), Some(i)));
    let mut turned: Vec<Word> = turned.collect();
    if let Some(last) = turned.last_mut() {
        last.text.push_str(mark);
    }
    Translation(turned)
}

fn unchanged(html: &str) -> String {
    let document = document(html);
    let translation: Vec<Translation> = document
        .sentences
        .iter()
        .map(|s| {
            let mut translation = Translation::same(&s.text.split_whitespace().collect::<Vec<_>>().join(" "));
            s.restore(&mut translation);
            translation
        })
        .collect();
    document.render(html, &translation).text
}

#[test]
fn all_tokens_together_are_the_input() {
    for html in [
        "",
        "a < b",
        "<p class='a>b'>x</p><!-- c --><br/>",
        "<",
        "</",
        "<b",
        "<!doctype html><script>if (a<b) '</p>'</script>x",
        "<code>a<code>b</code>c</code>d",
        "<script>never closed",
        "<!-- never closed",
        "<a href=\"x\" title='y'>",
        "é<é>",
    ] {
        let whole: String = tokens(html)
            .iter()
            .map(|token| match token {
                Token::Text(raw) | Token::Break(raw) | Token::Point(raw) => *raw,
                Token::Open { raw, .. } | Token::Close { raw, .. } | Token::Opaque { raw, .. } => *raw,
            })
            .collect();
        assert_eq!(whole, html);
    }
}

#[test]
fn text_is_translated_and_markup_is_kept() {
    let html = "<!doctype html>\n<h1 title=\"A title\">One dog</h1>\n<p>Two cats.  Three birds.</p><br>\n<ul><li>x y</li></ul>";
    let wanted = "<!doctype html>\n<h1 title=\"A title\">DOG ONE</h1>\n<p>CATS TWO.  BIRDS THREE.</p><br>\n<ul><li>Y X</li></ul>";
    assert_eq!(backwards(html), wanted);
}

#[test]
fn what_is_no_text_is_not_touched() {
    for html in [
        "<script>var a = 'one two';</script>",
        "<style>p { color: red }</style>",
        "<!-- one two -->",
        "<pre>one two</pre>",
        "<p translate=\"no\">one <b>two</b></p>",
        "<span class=\"x notranslate\">one two</span>",
        "<p>12 %</p><p>🙂 <b>&nbsp;</b></p>",
    ] {
        assert_eq!(backwards(html), html);
    }
}

#[test]
fn tags_go_with_their_words() {
    assert_eq!(backwards("<p>a <b>big</b> dog</p>"), "<p>DOG <b>BIG</b> A</p>");
    assert_eq!(backwards("a <a href=\"x\">big red</a> dog."), "DOG <a href=\"x\">RED BIG</a> A.");
    assert_eq!(backwards("<i>a <b>big</b></i> dog"), "DOG <i><b>BIG</b> A</i>");
    assert_eq!(backwards("<b>all of it.</b>"), "<b>IT OF ALL.</b>");
    assert_eq!(backwards("a <img src=x> dog"), "<img src=x>DOG A");
    assert_eq!(backwards("the dog <b>runs</b>."), "<b>RUNS</b> DOG THE.");
    // The mark of the last word stood behind the element.
    assert_eq!(backwards("runs the <b>dog</b>."), "<b>DOG</b> THE RUNS.");
    let translation = Translation(vec![Word::new("LE", Some(0)), Word::new("CHIEN.", Some(1))]);
    assert_eq!(document("the <b>dog</b>.").render("", &[translation]).text, "LE <b>CHIEN</b>.");
}

#[test]
fn tags_may_reach_over_sentences() {
    assert_eq!(backwards("One <b>two. Three</b> four."), "<b>TWO ONE. FOUR THREE</b>.");
    assert_eq!(backwards("<b>One two. Three four.</b>"), "<b>TWO ONE. FOUR THREE.</b>");
}

#[test]
fn broken_markup_loses_no_tag() {
    for html in
        ["a <b>big dog", "a big</b> dog", "<i>a <b>big</i> dog</b>", "<b><div>a dog</div></b>", "a < b & c"]
    {
        let text = backwards(html);
        for tag in tokens(html) {
            if let Token::Open { raw, .. } | Token::Close { raw, .. } | Token::Break(raw) = tag {
                assert_eq!(text.matches(raw).count(), html.matches(raw).count(), "{raw} in {text}");
            }
        }
    }
}

#[test]
fn code_inside_a_sentence_stays() {
    let text = backwards("call <code>f(x) &amp;&amp; g</code> now");
    assert_eq!(text.matches("<code>f(x) &amp;&amp; g</code>").count(), 1, "{text}");
    let same = unchanged("call <code>f(x)</code>, <b>then</b> <code>f(x)</code> now");
    assert_eq!(same, "call <code>f(x)</code>, <b>then</b> <code>f(x)</code> now");
}

#[test]
fn entities_come_back_as_they_were() {
    for html in ["<p>Tom &amp; Ann&eacute; &#8211; &lt;x&gt; &foo; it</p>", "a &quot;b&quot; c"] {
        assert_eq!(unchanged(html), html);
    }
    assert_eq!(unchanged("AT&T <b>is</b> it"), "AT&amp;T <b>is</b> it");
    assert_eq!(backwards("<p>x &lt;b&gt; y</p>"), "<p>Y &lt;B&gt; X</p>");
}

#[test]
fn what_is_not_translated_keeps_its_tags_wherever_it_stands() {
    for html in [
        "Run. <code>foo()</code>. Then go.",
        "Call <code>a. B</code> now. Go.",
        "<code>🙂 x</code> is nice <code>🙂</code>",
        "<code>1</code>",
    ] {
        assert_eq!(unchanged(html), html);
    }
    let long = format!("See <code>{}</code> now", "x y. Z ".repeat(800).trim_end());
    assert_eq!(unchanged(&long), long);
}

#[test]
fn however_many_tags_there_are_they_are_all_there() {
    let deep = |n: usize| "<b>".repeat(n) + "A dog." + &"</b>".repeat(n) + " Two <i>cats</i>.";
    let wide = "<b>A</b> <i>".repeat(5_000) + "dog" + &"</u>".repeat(5_000);
    for html in [deep(3), deep(DEPTH), deep(20_000), wide, "<b>".repeat(30_000) + "A dog"] {
        let out = backwards(&html);
        for tag in ["<b>", "</b>", "<i>", "</i>", "</u>"] {
            assert_eq!(out.matches(tag).count(), html.matches(tag).count(), "{tag}");
        }
        assert!(out.contains("DOG"));
    }
}

#[test]
fn however_many_entities_there_are_they_are_all_there() {
    let html: String = (0..20_000).map(|i| format!("&a{i:x};")).collect::<String>() + " a dog";
    let out = backwards(&html);
    assert!(out.contains("&a0;") && out.contains("&a1234;") && out.contains("DOG"), "{}", &out[..100]);
}

#[test]
fn private_characters_come_back_as_themselves() {
    for html in [
        "<p>A \u{e000} dog &foo; runs</p>",
        "<p>A dog &foo; \u{e000} &#xe000; &#xE001; \u{e001} runs &bar;</p>",
        "a &foo; <code>&foo; \u{e000}</code> <code>&bar;</code> &bar; dog",
    ] {
        assert_eq!(unchanged(html), html);
    }
    // Those of one paragraph stay out of another.
    let html = "<p>One &foo; dog</p><p>Two \u{e000} dogs &bar; run</p>";
    assert_eq!(unchanged(html), html);
}

#[test]
fn more_entities_than_one_private_area_has() {
    let html: String = (0..20_000).map(|i| format!("&a{i:x}; ")).collect::<String>() + "dogs";
    assert_eq!(unchanged(&html), html);
}

#[test]
fn what_is_not_closed_stays_at_the_end() {
    for html in
        ["one two <!-- three", "one two <code>three", "one two <svg>three", "one <span translate=no>two"]
    {
        assert!(backwards(html).ends_with(&html[html.find('<').unwrap()..]), "{}", backwards(html));
    }
}

#[test]
fn code_keeps_its_place_among_equal_words() {
    for html in [
        "call <code>a</code> a man",
        "x <code>x</code> x <kbd>x</kbd> y",
        "a<code>a</code> is",
        "see <code>1f(x) y</code>",
    ] {
        assert_eq!(unchanged(html), html);
    }
}
