use super::*;
use crate::segment::DEPTH;
use crate::words::{Translation, Word};

/// Translates each sentence by reversing its words and converting them to capitals; final
/// punctuation stays at the end.
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
    assert_eq!(document.render(html, &translation).text, html);
    document.render_normalised(html, &translation).text
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
        let whole: String = tokens(html, Kind::Page)
            .iter()
            .map(|token| match token {
                Token::Text(raw) => *raw,
                Token::Break(tag) | Token::Point(tag) | Token::Open { tag, .. } => tag.raw,
                Token::Close { raw, .. } | Token::Opaque { raw, .. } => *raw,
            })
            .collect();
        assert_eq!(whole, html);
    }
}

#[test]
fn text_is_translated_and_markup_is_kept() {
    let html = "<!doctype html>\n<h1 title=\"A title\">One dog</h1>\n<p>Two cats.  Three birds.</p><br>\n<ul><li>x y</li></ul>";
    let wanted = "<!doctype html>\n<h1 title=\"TITLE A\">DOG ONE</h1>\n<p>CATS TWO.  BIRDS THREE.</p><br>\n<ul><li>Y X</li></ul>";
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
    assert_eq!(backwards("a <img src=x> dog"), "<img src=x> DOG A");
    assert_eq!(backwards("the dog <b>runs</b>."), "<b>RUNS</b> DOG THE.");
    // The punctuation after the last word stood outside the element.
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
        for tag in tokens(html, Kind::Page) {
            if let Token::Open { tag: Tag { raw, .. }, .. }
            | Token::Close { raw, .. }
            | Token::Break(Tag { raw, .. }) = tag
            {
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
    // The placeholders of one paragraph do not appear in another.
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

#[test]
fn attributes_that_people_read_are_translated() {
    for (html, wanted) in [
        ("<img alt=\"a dog\" src=\"a dog\">", "<img alt=\"DOG A\" src=\"a dog\">"),
        ("<input placeholder='your name' value='a b'>", "<input placeholder='NAME YOUR' value='a b'>"),
        ("<a aria-label=\"a b\" href=x>c d</a>", "<a aria-label=\"B A\" href=x>D C</a>"),
        ("x <b TITLE=\"a b\">y</b>", "<b TITLE=\"B A\">Y</b> X"),
        ("<textarea placeholder=\"a b\">c d</textarea>", "<textarea placeholder=\"B A\">c d</textarea>"),
        ("<svg aria-label=\"a b\"><g/></svg>", "<svg aria-label=\"B A\"><g/></svg>"),
        // There is nothing else to translate.
        ("<p><img alt=\"a b\"> 12</p>", "<p><img alt=\"B A\"> 12</p>"),
        // Entities keep the spelling of the value, and quotation marks do not end it.
        ("<p title=\"a &amp; b&nbsp;c\">", "<p title=\"C&nbsp;B &amp; A\">"),
        ("<p title='say &#39;a&#39;'>", "<p title='&#39;A&#39; SAY'>"),
        ("<p title=\"/?a=1&copy=2 b\">", "<p title=\"B /?A=1&amp;COPY=2\">"),
        // An unquoted value.
        ("<img alt=dog/>", "<img alt=\"DOG/\">"),
        // Not translated.
        ("<p translate=no title=\"a b\">c</p>", "<p translate=no title=\"a b\">c</p>"),
        (
            "<img alt=\"12\"><p title=\"\" data-title=\"a b\">",
            "<img alt=\"12\"><p title=\"\" data-title=\"a b\">",
        ),
        ("<code title=\"a b\">c</code>", "<code title=\"a b\">c</code>"),
    ] {
        assert_eq!(backwards(html), wanted);
        unchanged(html);
    }
    let html = "<img alt=\"One dog. Two cats.\">";
    assert_eq!(backwards(html), "<img alt=\"DOG ONE. CATS TWO.\">");
    // A translation that contains quotation marks.
    let translation = Translation(vec![Word::new("le \"chien\" <d'or>", Some(0))]);
    let rendered = document("<img alt='dog'>").render("", std::slice::from_ref(&translation)).text;
    assert_eq!(rendered, "<img alt='le \"chien\" &lt;d&#39;or&gt;'>");
    let rendered = document("<img alt=dog>").render("", &[translation]).text;
    assert_eq!(rendered, "<img alt=\"le &quot;chien&quot; &lt;d'or&gt;\">");
}

#[test]
fn every_entity_of_the_standard_is_read() {
    for (html, wanted) in [
        ("c&oelig;ur", "cœur"),
        ("caf&eacute", "café"),
        ("d&eacutej&agrave vu", "déjà vu"),
        ("it&#146;s", "it’s"),
        ("it&#x2019;s", "it’s"),
        ("it&#x2019s", "it’s"),
        ("a &ne; b &notit; c", "a ≠ b ¬it; c"),
        ("AT&T &Tee", "AT&T &Tee"),
        ("x &hArr; y &bigstar; z", "x ⇔ y ★ z"),
    ] {
        let document = document(html);
        assert_eq!(document.sentences[0].text, wanted);
        unchanged(html);
    }
    assert_eq!(backwards("<p>c&oelig;ur d&eacutej</p>"), "<p>DÉJ CŒUR</p>");
    assert_eq!(unchanged("c&oelig;ur caf&eacute"), "c&oelig;ur caf&eacute;");
}

#[test]
fn only_the_attribute_says_that_nothing_is_translated() {
    for (html, wanted) in [
        ("<a href=\"?translate=no\">a b</a>", "<a href=\"?translate=no\">B A</a>"),
        ("<a title='translate=\"no\"' href=x>a b</a>", "<a title='TRANSLATE=\"NO\"' href=x>B A</a>"),
        ("<a data-translate=\"no\">a b</a>", "<a data-translate=\"no\">B A</a>"),
        ("<a class=\"b\" id=\"notranslate\">a b</a>", "<a class=\"b\" id=\"notranslate\">B A</a>"),
        ("<a translate = 'NO'>a b</a>", "<a translate = 'NO'>a b</a>"),
    ] {
        assert_eq!(backwards(html), wanted);
    }
}

#[test]
fn spaces_that_hold_words_together_stay() {
    for (html, wanted) in [
        ("run 10&nbsp;km now", "NOW KM&nbsp;10 RUN"),
        ("<p>run <b>10&nbsp;km</b>.</p>", "<p><b>KM&nbsp;10</b> RUN.</p>"),
        ("<p>run 10&nbsp;<b>km</b></p>", "<p><b>KM</b>&nbsp;10 RUN</p>"),
        ("run 10\u{202f}km &nbsp; now", "NOW &nbsp; KM\u{202f}10 RUN"),
    ] {
        assert_eq!(backwards(html), wanted);
        assert_eq!(unchanged(html), html);
    }
    // Words that are no longer adjacent, and words of unknown origin.
    let words = |list: &[(&str, Option<usize>)]| {
        Translation(list.iter().map(|(text, from)| Word::new(*text, *from)).collect())
    };
    let render = |words| document("un &nbsp;! Va").render("", &[words, Translation::same("Va")]).text;
    assert_eq!(render(words(&[("one!", Some(0))])), "one! Va");
    let render = |words| document("10&nbsp;km").render("", &[words]).text;
    assert_eq!(render(words(&[("10", None), ("kilometres", None)])), "10&nbsp;kilometres");
    let render = |words| document("1&nbsp;000 km").render("", &[words]).text;
    let document = document("1&nbsp;000 km");
    let mut translation = words(&[("1", Some(0)), ("000", Some(1)), ("Km", Some(2))]);
    document.sentences[0].restore(&mut translation);
    assert_eq!(render(translation), "1&nbsp;000 Km");
}

#[test]
fn what_a_browser_takes_for_text_is_text() {
    assert_eq!(backwards("<title>a <b>b</b></title><p>c d"), "<title>&lt;B&gt;B&lt;/B&gt; A</title><p>D C");
    assert_eq!(backwards("<script>if (a<b) '<p>c d'</script>x y"), "<script>if (a<b) '<p>c d'</script>Y X");
    assert_eq!(backwards("<script src=\"a.js\"/><p>c d</p>"), "<script src=\"a.js\"/><p>D C</p>");
    assert_eq!(backwards("<p title=\"1 > 0\">c d</p>"), "<p title=\"1 > 0\">D C</p>");
    assert_eq!(backwards("<noscript><p>c d</p></noscript>"), "<noscript><p>D C</p></noscript>");
}

#[test]
fn a_page_that_is_its_own_translation_comes_back_byte_for_byte() {
    let html = "<!DOCTYPE html>\r\n<html lang=en>\r\n<P  CLASS = 'a'>Two   cats &amp\r\n  <B\n>ru</B>n  &copy 2024.</p >\
                <img alt=dog src=x><!-- c --><p>AT&T</p>";
    assert_ne!(unchanged(html), html);
}

#[test]
fn tags_inside_of_a_word_stay_there_if_the_word_does() {
    for html in [
        "Water is H<sub>2</sub>O, not CO<sub>2</sub>.",
        "un<b>believ</b>able <i>(yes</i>) it is",
        "See note<a id=\"n\"></a> and<img src=x>, or (<b>dog</b>)<img src=y>. Next<img src=z> one.",
        "The dog runs.<img src=x> The cat<img src=y>",
        "<b>dog</b><img src=x><i>.</i> A cat",
        "<b>12 %.</b> Dogs run. <i>1,000</i>. 20 %. Cats sleep. <b>3.</b>",
    ] {
        assert_eq!(unchanged(html), html);
    }
    let translate = |html: &str, words: &[(&str, usize)]| {
        let words = words.iter().map(|(text, from)| Word::new(*text, Some(*from))).collect();
        document(html).render(html, &[Translation(words)]).text
    };
    // A footnote mark moves with its word, punctuation stays outside, and an element without a
    // counterpart is empty.
    assert_eq!(
        translate("the dog<img src=x> runs", &[("läuft", 2), ("der", 0), ("Hund", 1)]),
        "läuft der Hund<img src=x>"
    );
    // The same if no word of the translation is aligned to that word.
    assert_eq!(
        translate("the apple tree<img src=x> stands", &[("der", 0), ("Apfelbaum", 1), ("steht", 3)]),
        "der Apfelbaum<img src=x> steht"
    );
    assert_eq!(translate("dog<img src=x>, runs", &[("Hund,", 0), ("läuft", 1)]), "Hund<img src=x>, läuft");
    assert_eq!(translate("(<b>dog</b>) runs", &[("(Hund)", 0), ("läuft", 1)]), "(<b>Hund</b>) läuft");
    assert_eq!(
        translate("m<sup>2</sup> here", &[("Quadratmeter", 0), ("hier", 1)]),
        "Quadratmeter <sup></sup>hier"
    );
}
