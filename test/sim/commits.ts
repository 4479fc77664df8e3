import type { Commit } from '../../src/subscription/subscription-store.ts'
import { inOrder, isAccepted, type Move, moveOf, type StoreEffect } from '../../src/testing/simulation/checks.ts'
import type { History } from '../../src/testing/simulation/history.ts'

/** Follows what reached the store, of all subscriptions, in the order in which it did. */
export interface CommitWatcher {
  readonly problems: readonly string[]
  /** A subscription was switched to another version, reset, or a version was dropped. */
  moved?(move: Move): void
  /** The commit is in the store, though its process may not know. */
  committed(commit: Commit, who: string): void
  /** Refused by the store, or its answer was lost: its process can't rely on what it has in memory. */
  doubted?(who: string): void
}

export function walkCommits(history: History, watchers: readonly CommitWatcher[]): void {
  for (const { kind, who, text, about } of inOrder(history, ['effect', 'lost'])) {
    if (kind === 'lost') {
      if (text.startsWith('subscriptions.commit ')) for (const watcher of watchers) watcher.doubted?.(who)
      continue
    }
    const effect = about as StoreEffect
    const move = moveOf(effect)
    if (move) for (const watcher of watchers) watcher.moved?.(move)
    if (isAccepted(effect)) {
      for (const watcher of watchers) watcher.committed(effect.about?.[0] as Commit, who)
    } else if (effect.what === 'subscriptions.commit') for (const watcher of watchers) watcher.doubted?.(who)
  }
}
