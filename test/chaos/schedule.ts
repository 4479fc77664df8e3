import type { Nemesis, Random } from './scene.ts'

/** Each of them once, in an order by chance, and from then on by their weights. */
export function* schedule(nemeses: readonly Nemesis[], random: Random): Generator<Nemesis, never> {
  const deck = [...nemeses]
  while (deck.length > 0) yield* deck.splice(random.below(deck.length), 1)
  const total = nemeses.reduce((sum, { weight }) => sum + weight, 0)
  for (;;) {
    let at = random.below(total)
    const chosen = nemeses.find(({ weight }) => {
      at -= weight
      return at < 0
    })
    yield chosen as Nemesis
  }
}
