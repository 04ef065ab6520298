//! Lists that grow at their end and share their beginnings: a copy costs nothing, however long the list.

use std::sync::Arc;

/// A list; the last item is at hand.
#[derive(Debug)]
pub(crate) struct Chain<T>(Option<Arc<Link<T>>>);

#[derive(Debug)]
struct Link<T> {
    item: T,
    before: Chain<T>,
    count: usize,
}

impl<T> Default for Chain<T> {
    fn default() -> Self {
        Chain(None)
    }
}

impl<T> Clone for Chain<T> {
    fn clone(&self) -> Self {
        Chain(self.0.clone())
    }
}

impl<T> Chain<T> {
    /// The list with one more item.
    pub(crate) fn with(self, item: T) -> Chain<T> {
        let count = self.len() + 1;
        Chain(Some(Arc::new(Link { item, before: self, count })))
    }

    /// The last item.
    pub(crate) fn last(&self) -> Option<&T> {
        self.0.as_ref().map(|link| &link.item)
    }

    /// The list without its last item.
    pub(crate) fn without_last(&self) -> Chain<T> {
        self.0.as_ref().map(|link| link.before.clone()).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.count)
    }

    /// Whether both are one list, not only equal.
    pub(crate) fn is_same(&self, other: &Chain<T>) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The items behind the first so many, in order.
    pub(crate) fn from(&self, first: usize) -> Vec<&T> {
        let mut out = Vec::with_capacity(self.len().saturating_sub(first));
        let mut at = self;
        while let Some(link) = at.0.as_ref().filter(|link| link.count > first) {
            out.push(&link.item);
            at = &link.before;
        }
        out.reverse();
        out
    }
}

impl<T> Drop for Chain<T> {
    /// A long list is dropped in a loop: each link owns the one before it.
    fn drop(&mut self) {
        let mut at = self.0.take();
        while let Some(link) = at {
            match Arc::try_unwrap(link) {
                Ok(mut link) => at = link.before.0.take(),
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Chain;

    #[test]
    fn lists_share_their_beginnings() {
        let one = Chain::default().with('a');
        let (ab, ac) = (one.clone().with('b'), one.clone().with('c'));
        assert_eq!((ab.from(0), ac.from(1)), (vec![&'a', &'b'], vec![&'c']));
        assert!(ab.without_last().is_same(&ac.without_last()) && !ab.is_same(&ac));
        assert_eq!((ab.len(), ab.last(), one.without_last().last()), (2, Some(&'b'), None));
    }

    #[test]
    fn a_long_list_is_dropped_without_recursion() {
        let list = (0..1_000_000).fold(Chain::default(), Chain::with);
        assert_eq!(list.len(), 1_000_000);
    }
}
