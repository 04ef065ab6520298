//! Recursive rules: which have texts, which have the empty text, and how left recursion is removed.
//!
//! Left recursion is a system of linear equations: with all empty beginnings multiplied out, the rules A of a group that
//! begin with each other are `A = b_A | B a_AB | C a_AC ...`, where no `b` begins with a rule of the group. A text of A is
//! thus some `b_B` and then a way up from B to A, one `a` after the other: `A = b_A T_AA | b_B T_BA | ...`, with the ways
//! `T_BA = a_CB T_CA | ...`, and the empty way for `T_AA`. Ways are recursive at their end only, which costs no stack; and a
//! way to A followed by a way from A to A is a way to A, so the stacks of ambiguous rules do not grow
//! ([`Nodes::absorbs`]). Rules that are each other (`A = B | ...`, `B = A | ...`) count as one, so no way leads back to
//! where it began without reading anything. This is the left-corner transformation (Rosenkrantz and Lewis, 1970), over
//! expressions instead of productions.

use super::nodes::{Node, NodeId, Nodes, RuleId, fewer};
use hashbrown::{HashMap, HashSet};
use punchcard_automata::languages::UNBOUNDED;
use punchcard_grammar::GrammarError;
use std::collections::VecDeque;

/// The strongly connected components of a graph, each after those that it has edges to (Tarjan, 1972).
pub(crate) fn groups(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let count = edges.len();
    let (mut order, mut low, mut on_stack) = (vec![NEW; count], vec![0; count], vec![false; count]);
    let (mut stack, mut out, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if order[root] != NEW {
            continue;
        }
        // The nodes on the way, each with the number of edges already followed.
        let mut path = vec![(root, 0)];
        while let Some(&mut (node, ref mut followed)) = path.last_mut() {
            if *followed == 0 {
                (order[node], low[node], on_stack[node]) = (next, next, true);
                next += 1;
                stack.push(node);
            }
            if let Some(&target) = edges[node].get(*followed) {
                *followed += 1;
                if order[target] == NEW {
                    path.push((target, 0));
                } else if on_stack[target] {
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            path.pop();
            if let Some(&(before, _)) = path.last() {
                low[before] = low[before].min(low[node]);
            }
            if low[node] == order[node] {
                let mut group = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    group.push(member);
                    if member == node {
                        break;
                    }
                }
                group.sort_unstable();
                out.push(group);
            }
        }
    }
    out
}

/// Those of the rules that have a text, if all others have.
pub(crate) fn productive(nodes: &Nodes, rules: &[RuleId]) -> HashSet<RuleId> {
    fn has_text(nodes: &Nodes, id: NodeId, group: &HashSet<RuleId>, known: &HashSet<RuleId>) -> bool {
        match nodes.get(id) {
            Node::Terminal(_) => id != NodeId::NOTHING,
            Node::Sequence(..) => {
                let mut at = id;
                while let Node::Sequence(head, tail) = *nodes.get(at) {
                    if !has_text(nodes, head, group, known) {
                        return false;
                    }
                    at = tail;
                }
                has_text(nodes, at, group, known)
            }
            Node::Choice(items) => items.iter().any(|&item| has_text(nodes, item, group, known)),
            Node::Repeat(body, min, _) => *min == 0 || has_text(nodes, *body, group, known),
            Node::Rule(rule) => !group.contains(rule) || known.contains(rule),
            Node::Limit(body, _) => has_text(nodes, *body, group, known),
            Node::Json(_) | Node::Token(_) | Node::Longest(_) | Node::LimitEnd | Node::Begin(_) | Node::End(_) => true,
        }
    }
    let group: HashSet<RuleId> = rules.iter().copied().collect();
    let mut known = HashSet::new();
    spread(rules, &users(nodes, rules), |rule| {
        let new = !known.contains(&rule) && has_text(nodes, nodes.body(rule), &group, &known);
        if new {
            known.insert(rule);
        }
        new
    });
    known
}

/// Which of the rules use each rule.
pub(crate) fn users(nodes: &Nodes, rules: &[RuleId]) -> HashMap<RuleId, Vec<RuleId>> {
    let mut users: HashMap<RuleId, Vec<RuleId>> = HashMap::new();
    for &rule in rules {
        for used in nodes.rules_in(nodes.body(rule)) {
            users.entry(used).or_default().push(rule);
        }
    }
    users
}

/// Asks of each rule whether it is `new`, and again whenever a rule that it uses is: a fixpoint that asks only where
/// something has changed, as a chain of rules would otherwise take a round for each.
pub(crate) fn spread(rules: &[RuleId], users: &HashMap<RuleId, Vec<RuleId>>, mut new: impl FnMut(RuleId) -> bool) {
    let mut open: VecDeque<RuleId> = rules.iter().copied().collect();
    let mut waiting: HashSet<RuleId> = open.iter().copied().collect();
    while let Some(rule) = open.pop_front() {
        waiting.remove(&rule);
        if new(rule) {
            for &user in users.get(&rule).into_iter().flatten() {
                if waiting.insert(user) {
                    open.push_back(user);
                }
            }
        }
    }
}

/// Takes those of the rules that have no text out of all of them; returns them.
pub(crate) fn prune(nodes: &mut Nodes, rules: &[RuleId]) -> HashSet<RuleId> {
    let alive = productive(nodes, rules);
    let dead: HashSet<RuleId> = rules.iter().copied().filter(|rule| !alive.contains(rule)).collect();
    if !dead.is_empty() {
        nodes.remove_rules(&dead, rules.iter().copied());
    }
    dead
}

/// Notes which of the rules have the empty text.
pub(crate) fn find_nullable(nodes: &mut Nodes, rules: &[RuleId]) {
    let users = users(nodes, rules);
    spread(rules, &users, |rule| {
        let new = !nodes.is_rule_nullable(rule) && nodes.is_nullable(nodes.body(rule));
        if new {
            nodes.set_nullable(rule, true);
        }
        new
    });
}

/// Rules of `group` that a node can begin with.
fn beginnings(nodes: &Nodes, id: NodeId, group: &HashMap<RuleId, usize>, out: &mut Vec<usize>) {
    match nodes.get(id) {
        Node::Sequence(..) => {
            let mut at = id;
            while let Node::Sequence(head, tail) = *nodes.get(at) {
                beginnings(nodes, head, group, out);
                if !nodes.is_nullable(head) {
                    return;
                }
                at = tail;
            }
            beginnings(nodes, at, group, out);
        }
        Node::Choice(items) => items.iter().for_each(|&item| beginnings(nodes, item, group, out)),
        Node::Repeat(body, ..) | Node::Limit(body, _) => beginnings(nodes, *body, group, out),
        Node::Rule(rule) => out.extend(group.get(rule)),
        _ => {}
    }
}

/// The groups of rules that begin with each other, each after those that it begins with.
fn left_groups(nodes: &Nodes, rules: &[RuleId]) -> Vec<Vec<RuleId>> {
    let index: HashMap<RuleId, usize> = rules.iter().enumerate().map(|(i, &rule)| (rule, i)).collect();
    let edges: Vec<Vec<usize>> = rules
        .iter()
        .map(|&rule| {
            let mut out = Vec::new();
            beginnings(nodes, nodes.body(rule), &index, &mut out);
            out.sort_unstable();
            out.dedup();
            out
        })
        .collect();
    let recursive = |group: &Vec<usize>| group.len() > 1 || edges[group[0]].contains(&group[0]);
    groups(&edges).into_iter().filter(recursive).map(|group| group.into_iter().map(|i| rules[i]).collect()).collect()
}

/// Whether some rule can begin with itself. Ways can, and that is harmless: they do so at their end, on the same stack.
pub(crate) fn is_left_recursive(nodes: &Nodes, rules: &[RuleId]) -> bool {
    left_groups(nodes, rules).iter().flatten().any(|&rule| !nodes.is_climb(rule))
}

/// Rules that begin with each other; those that are each other count as one.
const MOST_CLASSES: usize = 200;

/// Rewrites the rules so that none can begin with itself.
pub(crate) fn remove_left_recursion(nodes: &mut Nodes, rules: &[RuleId]) -> Result<(), GrammarError> {
    for group in left_groups(nodes, rules) {
        remove_in_group(nodes, &group)?;
    }
    // Not before: what follows a rule may be a rule of a later group.
    nodes.finish_pending();
    Ok(())
}

/// What a node begins with: rules of the group, each with what follows it, and all else, without the empty text.
struct Split {
    calls: Vec<(RuleId, NodeId)>,
    rest: NodeId,
}

fn split(nodes: &mut Nodes, id: NodeId, group: &HashMap<RuleId, usize>) -> Split {
    match nodes.get(id).clone() {
        Node::Rule(rule) if group.contains_key(&rule) => {
            Split { calls: vec![(rule, NodeId::EMPTY)], rest: NodeId::NOTHING }
        }
        Node::Choice(items) => {
            let (mut calls, mut rests) = (Vec::new(), Vec::new());
            for &item in &items {
                let part = split(nodes, item, group);
                calls.extend(part.calls);
                rests.push(part.rest);
            }
            Split { calls, rest: nodes.choice(rests) }
        }
        Node::Sequence(..) => {
            let (mut at, mut calls, mut rests) = (id, Vec::new(), Vec::new());
            loop {
                let (head, tail) = match *nodes.get(at) {
                    Node::Sequence(head, tail) => (head, tail),
                    _ => (at, NodeId::EMPTY),
                };
                let part = split(nodes, head, group);
                for (rule, then) in part.calls {
                    calls.push((rule, nodes.sequence(then, tail)));
                }
                rests.push(nodes.sequence(part.rest, tail));
                if tail == NodeId::EMPTY || !nodes.is_nullable(head) {
                    return Split { calls, rest: nodes.choice(rests) };
                }
                at = tail;
            }
        }
        Node::Repeat(body, min, max) => {
            let part = split(nodes, body, group);
            let again = nodes.repeat(body, min.saturating_sub(1), fewer(max));
            let calls = part.calls.into_iter().map(|(rule, then)| (rule, nodes.sequence(then, again))).collect();
            Split { calls, rest: nodes.sequence(part.rest, again) }
        }
        Node::Limit(..) | Node::Terminal(_) | Node::Longest(_) | Node::Json(_) | Node::Token(_) | Node::Rule(_) => {
            let rest = nodes.without_empty(id);
            // A rule without the empty text may begin with the same rule with it, and so with itself.
            match nodes.as_rule(rest).filter(|rule| group.contains_key(rule)) {
                Some(rule) => Split { calls: vec![(rule, NodeId::EMPTY)], rest: NodeId::NOTHING },
                None => Split { calls: Vec::new(), rest },
            }
        }
        Node::LimitEnd | Node::Begin(_) | Node::End(_) => Split { calls: Vec::new(), rest: NodeId::NOTHING },
    }
}

/// Rules that are each other: each has the texts of the others (`A = B | ...`, `B = A | ...`).
struct Class {
    rules: Vec<RuleId>,
    /// Of all of them.
    split: Split,
}

/// The classes of the rules of a group, and the class of each rule. A call that nothing need follow makes the texts of the
/// called rule texts of the caller; where such calls lead back, the rules have the same texts. One class has them all, and
/// none of its calls of itself is left that reads nothing: it would add no text, but go round without end.
fn classes(nodes: &mut Nodes, rules: &[RuleId], index: &HashMap<RuleId, usize>) -> (Vec<Class>, Vec<usize>) {
    let splits: Vec<Split> = rules.iter().map(|&rule| split(nodes, nodes.body(rule), index)).collect();
    let same = |part: &Split| {
        let calls = part.calls.iter().filter(|&&(_, then)| nodes.is_nullable(then));
        calls.map(|(rule, _)| index[rule]).collect::<Vec<_>>()
    };
    let edges: Vec<Vec<usize>> = splits.iter().map(same).collect();
    let groups = groups(&edges);
    let mut class_of = vec![0; rules.len()];
    for (class, group) in groups.iter().enumerate() {
        group.iter().for_each(|&i| class_of[i] = class);
    }
    let mut splits: Vec<Option<Split>> = splits.into_iter().map(Some).collect();
    let mut classes = Vec::with_capacity(groups.len());
    for (class, group) in groups.into_iter().enumerate() {
        let (mut calls, mut rests) = (Vec::new(), Vec::new());
        for part in group.iter().filter_map(|&i| splits[i].take()) {
            rests.push(part.rest);
            for (rule, then) in part.calls {
                let then = if class_of[index[&rule]] == class { nodes.without_empty(then) } else { then };
                if then != NodeId::NOTHING {
                    calls.push((rule, then));
                }
            }
        }
        let split = Split { calls, rest: nodes.choice(rests) };
        classes.push(Class { rules: group.into_iter().map(|i| rules[i]).collect(), split });
    }
    (classes, class_of)
}

fn remove_in_group(nodes: &mut Nodes, rules: &[RuleId]) -> Result<(), GrammarError> {
    let index: HashMap<RuleId, usize> = rules.iter().enumerate().map(|(i, &rule)| (rule, i)).collect();
    let (classes, class_of) = classes(nodes, rules, &index);
    let class_of = |rule: RuleId| class_of[index[&rule]];
    if let [class] = &classes[..] {
        // One alone: its ways up are a repetition.
        let steps = nodes.choice(class.split.calls.iter().map(|&(_, then)| then));
        let ways = nodes.repeat(steps, 0, UNBOUNDED);
        let body = nodes.sequence(class.split.rest, ways);
        finish(nodes, &class.rules, body);
        return Ok(());
    }
    let count = classes.len();
    if count > MOST_CLASSES {
        let message = format!("{count} rules begin with each other; at most {MOST_CLASSES} may");
        return Err(GrammarError::new(message).with_hint("Begin some of them with a terminal"));
    }
    let group = rules[0].0;
    // Ways that lead nowhere have no text, and are taken out with all else that has none.
    let ways: Vec<Vec<RuleId>> =
        (0..count).map(|from| (0..count).map(|to| nodes.new_climb(group, from as u32, to as u32)).collect()).collect();
    let mut nullable = true;
    // A way is empty if each of its steps is.
    while std::mem::take(&mut nullable) {
        for (above, class) in classes.iter().enumerate() {
            for &(below, then) in &class.split.calls {
                for (&long, &short) in ways[class_of(below)].iter().zip(&ways[above]) {
                    if !nodes.is_rule_nullable(long) && nodes.is_nullable(then) && nodes.is_rule_nullable(short) {
                        nodes.set_nullable(long, true);
                        nullable = true;
                    }
                }
            }
        }
    }
    for (from, row) in ways.iter().enumerate() {
        for (to, &way) in row.iter().enumerate() {
            let mut items = if from == to { vec![NodeId::EMPTY] } else { Vec::new() };
            for (above, class) in classes.iter().enumerate() {
                for &(below, then) in &class.split.calls {
                    if class_of(below) == from {
                        let further = nodes.rule(ways[above][to]);
                        items.push(nodes.sequence(then, further));
                    }
                }
            }
            let body = nodes.choice(items);
            nodes.set_body(way, body);
        }
    }
    for (to, class) in classes.iter().enumerate() {
        let mut items = Vec::new();
        for (from, class) in classes.iter().enumerate() {
            let way = nodes.rule(ways[from][to]);
            items.push(nodes.sequence(class.split.rest, way));
        }
        let body = nodes.choice(items);
        finish(nodes, &class.rules, body);
    }
    Ok(())
}

/// The body of rules that are each other, given without the empty text.
fn finish(nodes: &mut Nodes, rules: &[RuleId], body: NodeId) {
    for &rule in rules {
        let body = if nodes.is_rule_nullable(rule) { nodes.choice([body, NodeId::EMPTY]) } else { body };
        nodes.set_body(rule, body);
    }
}
