//! Follows some texts of a compiled grammar, and holds it to what is promised of every grammar.
//!
//! A mask has the tokens that can be taken and no others; there is always a way on; what is said to complete a text
//! completes it; a budget is kept; rolling back leads back; and the only error is a limit, which leaves the matcher usable.

use crate::Choices;
use crate::vocabularies::{END, telling};
use punchcard_engine::{BudgetError, CompiledGrammar, Limits, Matcher, Piece};
use punchcard_schema::{SchemaError, SchemaErrorKind};

/// Texts that are followed.
const TEXTS: usize = 3;
/// Tokens of a text.
const TOKENS: usize = 14;
/// Single bytes that are tried at each place.
const BYTES: usize = 12;

/// Limits that end every check within seconds and some hundred megabytes.
pub(crate) fn limits(choices: &mut Choices<'_>) -> Limits {
    Limits {
        max_bytes: 1 << 16,
        max_depth: 200,
        max_alternatives: 128,
        max_search: 2_000,
        max_contexts: 100,
        max_automaton_states: 20_000,
        max_automaton_work: 100_000,
        max_states: 20_000,
        max_readings: 500,
        // So little that tables begin anew within a text.
        max_memory: if choices.once_in(8) { 1 << 19 } else { 1 << 23 },
        ..Limits::default()
    }
}

/// A text that was followed.
pub(crate) struct Text {
    pub(crate) bytes: Vec<u8>,
    /// Whether it is bytes alone, without tokens that are no text.
    pub(crate) is_plain: bool,
}

/// Follows texts; those that may end are handed to `complete`.
pub(crate) fn follow(grammar: &CompiledGrammar, choices: &mut Choices<'_>, complete: &mut dyn FnMut(&Text)) {
    for _ in 0..TEXTS {
        limited(one_text(grammar, choices, complete));
    }
    limited(within_budget(grammar, choices));
    limited(with_events(grammar, choices));
}

/// What was found, unless a limit was passed.
pub(crate) fn limited<T>(found: Result<T, SchemaError>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(error) => {
            assert!(matches!(error.kind, SchemaErrorKind::Limit { .. }), "found too late: {error}");
            assert!(!error.message.is_empty() && !error.hint.is_empty(), "{error:?} does not say what to do");
            None
        }
    }
}

fn one_text(
    grammar: &CompiledGrammar,
    choices: &mut Choices<'_>,
    complete: &mut dyn FnMut(&Text),
) -> Result<(), SchemaError> {
    let mut matcher = new_matcher(grammar);
    let mut text = Text { bytes: Vec::new(), is_plain: true };
    for at in 0..TOKENS {
        // A grammar can ask for the end token by its id.
        if matcher.is_terminated() {
            break;
        }
        let allowed = mask(&mut matcher)?;
        compare(&mut matcher, &allowed, choices, &text)?;
        let is_accepting = matcher.is_accepting()?;
        assert!(allowed.contains(&END) || !is_accepting, "the text may end, and the mask has no end: {}", shown(&text));
        if is_accepting {
            complete(&text);
        }
        assert!(!allowed.is_empty(), "a dead end after {}", shown(&text));
        if at % 3 == 0 {
            finish(&mut matcher, &text, complete)?;
            forced(&mut matcher, &text)?;
        }
        let ways = ways_on(allowed, is_accepting);
        if ways.is_empty() {
            break;
        }
        // Tokens of several bytes are few among all, and say more.
        let long: Vec<u32> = ways.iter().copied().filter(|&id| telling().contains(&id)).collect();
        let from = if long.is_empty() || choices.once_in(2) { &ways } else { &long };
        let id = from[choices.below(from.len())];
        assert!(matcher.accept_token(id)?, "token {id} is in the mask, and refused after {}", shown(&text));
        match grammar.vocabulary().text_token(id) {
            Some(bytes) => text.bytes.extend(bytes),
            None => text.is_plain = false,
        }
    }
    let after = mask(&mut matcher)?;
    let steps = matcher.steps();
    if steps > 0 && matcher.accept_bytes(b"a")? {
        assert!(matcher.rollback(1) && matcher.steps() == steps);
        assert!(mask(&mut matcher)? == after, "rolling back led elsewhere after {}", shown(&text));
    }
    assert!(!matcher.rollback(steps + 1) && matcher.rollback(steps));
    Ok(())
}

fn new_matcher(grammar: &CompiledGrammar) -> Matcher {
    Matcher::new(grammar.clone(), None).expect("without a budget there is nothing to refuse")
}

/// The tokens of the mask.
fn mask(matcher: &mut Matcher) -> Result<Vec<u32>, SchemaError> {
    let vocabulary = matcher.grammar().vocabulary().clone();
    // What was in the row before is no part of a mask.
    let mut words = vec![0xAAAA_AAAA; vocabulary.mask_words()];
    let first = matcher.fill_mask(&mut words);
    if first.is_err() {
        // A matcher that met a limit can still be asked.
        let _ = (matcher.fill_mask(&mut words), matcher.is_accepting(), matcher.clone().accept_token(END));
    }
    first?;
    let is_set = |id: &u32| words[*id as usize / 32] >> (id % 32) & 1 == 1;
    let allowed: Vec<u32> = (0..32 * words.len() as u32).filter(is_set).collect();
    assert!(allowed.last().is_none_or(|&last| (last as usize) < vocabulary.size()), "a bit beyond the vocabulary");
    Ok(allowed)
}

/// Tokens that go on with the text: all but the end, unless a grammar asks for that one by its id.
fn ways_on(mut allowed: Vec<u32>, is_accepting: bool) -> Vec<u32> {
    allowed.retain(|&id| id != END || !is_accepting);
    allowed
}

fn compare(matcher: &mut Matcher, allowed: &[u32], choices: &mut Choices<'_>, text: &Text) -> Result<(), SchemaError> {
    let vocabulary = matcher.grammar().vocabulary().clone();
    let size = vocabulary.size();
    let bytes: Vec<u32> = (0..BYTES).map(|_| choices.below(size) as u32).collect();
    for id in telling().chain(bytes) {
        let taken = matcher.clone().accept_token(id)?;
        let is_allowed = allowed.binary_search(&id).is_ok();
        let token = String::from_utf8_lossy(vocabulary.token(id).unwrap_or_default());
        assert!(
            taken == is_allowed,
            "token {id} {token:?} is {} the mask, and {} after {}",
            if is_allowed { "in" } else { "not in" },
            if taken { "taken" } else { "refused" },
            shown(text),
        );
    }
    Ok(())
}

/// Completes the text.
fn finish(matcher: &mut Matcher, text: &Text, complete: &mut dyn FnMut(&Text)) -> Result<(), SchemaError> {
    let Some(pieces) = matcher.completion()? else { return Ok(()) };
    let mut matcher = matcher.clone();
    let mut whole = Text { bytes: text.bytes.clone(), is_plain: text.is_plain };
    for piece in &pieces {
        let taken = match piece {
            Piece::Bytes(bytes) => {
                whole.bytes.extend(bytes);
                matcher.accept_bytes(bytes)?
            }
            Piece::Token(id) => {
                whole.is_plain = false;
                matcher.accept_token(*id)?
            }
        };
        assert!(taken, "the completion {pieces:?} is refused after {}", shown(text));
    }
    assert!(matcher.is_accepting()?, "the completion {pieces:?} does not complete {}", shown(text));
    complete(&whole);
    if let Some(tokens) = matcher.completion_tokens()? {
        assert!(tokens.is_empty(), "tokens complete a complete text");
    }
    Ok(())
}

/// What is forced can be taken, and nothing else.
fn forced(matcher: &mut Matcher, text: &Text) -> Result<(), SchemaError> {
    let forced = matcher.forced()?;
    let mut after = matcher.clone();
    assert!(after.accept_bytes(&forced)?, "forced bytes are refused after {}", shown(text));
    let mut after = matcher.clone();
    for id in matcher.forced_tokens()? {
        assert!(after.accept_token(id)?, "a forced token is refused after {}", shown(text));
    }
    Ok(())
}

/// A walk within a budget ends within it.
fn within_budget(grammar: &CompiledGrammar, choices: &mut Choices<'_>) -> Result<(), SchemaError> {
    const MOST: u32 = 40;
    let minimum = match Matcher::new(grammar.clone(), Some(0)) {
        Ok(_) => 0,
        Err(BudgetError::TooSmall { minimum }) => minimum,
        Err(BudgetError::Unknown) => return Ok(()),
        Err(BudgetError::Limit(error)) => return Err(error),
    };
    if minimum > MOST {
        return Ok(());
    }
    let budget = minimum + choices.below(6) as u32;
    let mut matcher = match Matcher::new(grammar.clone(), Some(budget)) {
        Ok(matcher) => matcher,
        Err(BudgetError::Limit(error)) => return Err(error),
        Err(error) => panic!("a budget of {budget} is refused, with a minimum of {minimum}: {error:?}"),
    };
    for taken in 0..=budget {
        let allowed = mask(&mut matcher)?;
        assert!(!allowed.is_empty(), "a budget of {budget} led to a dead end after {taken} tokens");
        let ways = ways_on(allowed, matcher.is_accepting()?);
        if ways.is_empty() || matcher.is_terminated() {
            break;
        }
        assert!(taken < budget, "a budget of {budget} tokens is passed");
        let id = ways[choices.below(ways.len())];
        assert!(matcher.accept_token(id)?, "token {id} is in the mask of a budget, and refused");
    }
    assert!(matcher.is_accepting()?, "a budget of {budget} ended in the middle");
    Ok(())
}

/// Events tell of a text what its tokens are, each end after its beginning.
fn with_events(grammar: &CompiledGrammar, choices: &mut Choices<'_>) -> Result<(), SchemaError> {
    let mut matcher = new_matcher(grammar);
    match matcher.tell_events() {
        Ok(()) => {}
        Err(punchcard_engine::CompileError::Schema(error)) => return Err(error),
        Err(error) => panic!("events cannot be told: {error}"),
    }
    for _ in 0..TOKENS {
        let allowed = mask(&mut matcher)?;
        let Some(&id) = allowed.get(choices.below(allowed.len())) else { break };
        let before = matcher.events(0).unwrap_or_default();
        assert!(matcher.accept_token(id)?);
        let after = matcher.events(0).unwrap_or_default();
        assert!(after.starts_with(&before), "events that were told changed after token {id}: {before:?}, {after:?}");
        let mut open = Vec::new();
        for event in &after {
            if event.is_end {
                let begun = open.pop();
                assert!(begun == Some((&event.kind, &event.name)), "{begun:?} ends as another: {after:?}");
            } else {
                open.push((&event.kind, &event.name));
            }
        }
        if matcher.is_terminated() {
            assert!(open.is_empty(), "not all that began has ended: {after:?}");
            break;
        }
    }
    Ok(())
}

/// A text, for messages.
fn shown(text: &Text) -> String {
    format!("{:?}{}", String::from_utf8_lossy(&text.bytes), if text.is_plain { "" } else { " with special tokens" })
}
