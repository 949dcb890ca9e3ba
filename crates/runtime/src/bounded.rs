//! Bounded concurrency: a function applied to many items, a limited number at a time, with answers in the order of the
//! items.

use std::future::Future;

use tokio::task::JoinSet;

/// Applies `work` to all items, at most `at_once` at a time; `None` = it panicked.
pub(crate) async fn map_concurrent<T, R, F>(
    items: Vec<T>,
    at_once: usize,
    work: impl Fn(T) -> F,
) -> Vec<Option<R>>
where
    F: Future<Output = R> + Send + 'static,
    R: Send + 'static,
{
    let mut answers: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let mut items = items.into_iter().enumerate();
    let mut open = JoinSet::new();
    loop {
        while open.len() < at_once.max(1)
            && let Some((at, item)) = items.next()
        {
            let one = work(item);
            open.spawn(async move { (at, one.await) });
        }
        match open.join_next().await {
            Some(Ok((at, answer))) => answers[at] = Some(answer),
            Some(Err(error)) => tracing::error!(%error, "the server made a mistake"),
            None => return answers,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn answers_come_in_order_and_no_more_are_done_at_once_than_may_be() {
        let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let answers = map_concurrent((0..50usize).collect(), 7, |n| {
            let (open, most) = (open.clone(), most.clone());
            async move {
                most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..(50 - n) {
                    tokio::task::yield_now().await;
                }
                open.fetch_sub(1, Ordering::SeqCst);
                n * 2
            }
        });
        let answers: Vec<usize> = answers.await.into_iter().flatten().collect();
        assert_eq!(answers, (0..50).map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 7);
    }
}
