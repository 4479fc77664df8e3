import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { draw } from '../../scripts/picture/draw.ts'
import { runStory } from '../../scripts/picture/run.ts'

it("the README's picture is what a run gives: a lane is held, then released, and the others have their balances both times", async () => {
  const story = await runStory()
  expect(story.held.events.map(({ outcome }) => outcome)).toContain('parked')
  expect(story.released.events.every(({ outcome }) => outcome === 'applied')).toBe(true)
  expect(readFileSync(new URL('../../docs/lane.svg', import.meta.url), 'utf8')).toBe(draw(story))
})
